// Command fixpoint runs, checks and describes agents on the Fixpoint engine.
//
//	fixpoint run [SPEC] --dir DIR    run an agent and show what happens
//	fixpoint chat [SPEC]             talk with an agent at the terminal
//	fixpoint check [SPEC]            say what is wrong with a spec
//	fixpoint describe [SPEC]         list or draw what its plugins register, and what its hooks could fight over
//	fixpoint plugins                 list the plugins that a spec can name
//	fixpoint pending --store STORE   list what kept runs wait for
//	fixpoint approve TICKET          approve it and go on; also deny, answer
//	fixpoint resume THREAD           go on after a crash
//	fixpoint threads --store STORE   list the kept threads
//	fixpoint worker --store STORE    serve the threads of a store
//	fixpoint submit THREAD PROMPT    give a thread to workers
//	fixpoint history THREAD          list a thread's commits; also diff, fork
//	fixpoint prune THREAD            drop old history; also delete
//	fixpoint verify --store STORE    look for damage
//	fixpoint inspect TRACE           show runs in a browser; also --store STORE
//	fixpoint explain TRACE KEY       say who wrote a value
//	fixpoint why TRACE CALL          tell the decision about a tool call
//
// Without SPEC it uses the built-in agent of examples/steward.
package main

import (
	"context"
	"os"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
)

func main() {
	ctx := cli.UntilSignal(context.Background())
	os.Exit(cli.Run(ctx, os.Args[1:], cli.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv}))
}
