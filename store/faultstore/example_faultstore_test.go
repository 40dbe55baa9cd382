package faultstore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
)

func Example() {
	ctx := context.Background()
	store, err := faultstore.New(memstore.New(memstore.Options{}), faultstore.Config{
		At: map[int]faultstore.Fault{1: faultstore.FailAfter, 3: faultstore.Crash},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := engine.JournalCommit{ID: [16]byte{1}, Thread: "t1", Record: []byte("\x01hello")}
	_, err = store.Append(ctx, c)
	fmt.Println("unknown outcome:", errors.Is(err, engine.ErrUnknownOutcome))
	revision, err := store.Append(ctx, c) // the same id: the store knows it
	fmt.Println(revision, err)

	_, err = store.Append(ctx, engine.JournalCommit{ID: [16]byte{2}, Thread: "t1", Base: 1})
	fmt.Println("crashed:", errors.Is(err, faultstore.ErrCrashed))
	store.Reopen(nil)
	for _, event := range store.Trace() {
		fmt.Println(event)
	}
	// Output:
	// unknown outcome: true
	// 1 <nil>
	// crashed: true
	// append t1 #1: fail_after
	// append t1 #2: none
	// append t1 #3: crash
}
