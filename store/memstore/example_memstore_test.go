package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/memstore"
)

func Example() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	defer store.Close()

	first := engine.JournalCommit{ID: [16]byte{1}, Thread: "t1", Record: []byte("\x01hello")}
	revision, err := store.Append(ctx, first)
	fmt.Println(revision, err)

	// A repeat is recognised by its id, a rival is told where the thread is.
	revision, err = store.Append(ctx, first)
	fmt.Println(revision, err)
	_, err = store.Append(ctx, engine.JournalCommit{ID: [16]byte{2}, Thread: "t1"})
	fmt.Println(err)

	image, err := store.Load(ctx, "t1", 0)
	fmt.Printf("%d %q %v\n", image.Revision, image.Tail[0].Record, err)
	// Output:
	// 1 <nil>
	// 1 <nil>
	// store: thread t1 is at revision 1, not at 0; load it again
	// 1 "\x01hello" <nil>
}

func ExampleStore_Acquire() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	ann, err := store.Acquire(ctx, "t1", "ann", 0) // runs out at once
	fmt.Println(ann.Epoch, err)
	bob, err := store.Acquire(ctx, "t1", "bob", time.Minute)
	fmt.Println(bob.Epoch, err)

	_, err = store.Append(ctx, engine.JournalCommit{ID: [16]byte{1}, Thread: "t1", Base: 2, Epoch: ann.Epoch})
	fmt.Println(errors.Is(err, engine.ErrFenced))
	revision, err := store.Append(ctx, engine.JournalCommit{ID: [16]byte{2}, Thread: "t1", Base: 2, Epoch: bob.Epoch})
	fmt.Println(revision, err)
	// Output:
	// 1 <nil>
	// 2 <nil>
	// true
	// 3 <nil>
}

func ExampleStore_Claim() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	_, err := store.Append(ctx, engine.JournalCommit{
		ID: [16]byte{1}, Thread: "t1",
		Effects: []engine.JournalEffect{{Lane: "mail", Body: []byte("hello")}},
	})
	fmt.Println(err)
	claims, err := store.Claim(ctx, "mail", "worker 1", 10, time.Minute)
	for _, c := range claims {
		fmt.Printf("%s %s, attempt %d, %v\n", c.Ref, c.Effect.Body, c.Attempts, err)
		fmt.Println(store.Settle(ctx, c, engine.Settlement{}))
	}
	// Output:
	// <nil>
	// t1/1/0 hello, attempt 1, <nil>
	// <nil>
}
