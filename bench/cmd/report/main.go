// Command report measures Fixpoint against its baselines and prints the table.
//
//	go run ./bench/cmd/report -svg docs/performance.svg
//
// It takes about two minutes and says nothing until it is done. Leave the machine alone meanwhile.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/ddd26017/fixpoint/bench/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := report.Main(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
