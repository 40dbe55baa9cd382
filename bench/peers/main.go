// Command peers measures Fixpoint beside other libraries that do the same work, in
// one process, and prints them in one table:
//
//	go run ./bench/peers
//
// It takes the flags of bench/cmd/report. The rows of Fixpoint have targets; those of
// the others have none, and a note that says where the comparison is unfair.
//
// # Who is compared
//
//	eino                 cloudwego/eino, a graph engine for agents; as a Pregel graph and as a DAG
//	go-memdb             hashicorp/go-memdb, an in-memory database with snapshots
//	go-immutable-radix   hashicorp/go-immutable-radix, a persistent tree
//	btree                tidwall/btree, the tree that Fixpoint is built on, by hand
//	cloned map           a Go map behind a RWMutex, cloned for each commit, by hand
//
// The last four only keep state. What runs the hooks there is the least that one
// would write by hand: an errgroup, and a commit of what the hooks return. It has no
// registration, no reports, no deadlines, and a hook that panics takes the process
// down; except in P4 it does not look for conflicts. Its keys and values are integers,
// which every store handles best; programs would have names and values of many types,
// as Fixpoint has. All stores are called through an interface, which is about a
// nanosecond of each read in P7.
//
// # What the numbers say
//
// How much the machinery around a hook costs, and nothing about real hooks, which take
// milliseconds. They say little about small states: below about 16 keys no tree beats
// a cloned map. There the case for an engine is what happens when hooks disagree:
// row P4 has eight hooks that increment one key. Fixpoint applies all eight. eino
// fails the run, or loses seven of them without a word, or, when each hook takes a
// lock around all it does, applies them in an order that changes from run to run, on a
// state that changes below it, and one node after the other.
//
// eino has callbacks, streaming and typed edges, and pays for them in every row here.
//
// Every work checks what its steps left behind: a peer that does not do the work, or
// what its note says that it does instead, gives an error and no number.
//
// Left out are libraries that are written in another language or not to be had as Go
// modules, memory (P8) and whole steps (P10), which the peers have nothing like.
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
	err := report.Main(ctx, os.Args[1:], os.Stdout, Rivals()...)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
