package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// UntilSignal returns a context that the first SIGINT or SIGTERM ends, for as long as the
// process lasts. Once it has ended, a second one ends the process at once.
func UntilSignal(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		got := <-signals
		signal.Stop(signals) // first, since who sees the context end may send the second
		cancel(fmt.Errorf("fixpoint: %s", got))
	}()
	return ctx
}
