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

// What was given up can be looked at and tried again.
func ExampleStore_Requeue() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	_, err := store.Append(ctx, engine.JournalCommit{
		ID: [16]byte{1}, Thread: "t1",
		Effects: []engine.JournalEffect{{Lane: "mail/urgent", Body: []byte("hello")}},
	})
	fmt.Println(err)
	claims, _ := store.Claim(ctx, "mail/urgent", "worker 1", 1, time.Minute)
	fmt.Println(store.Settle(ctx, claims[0], engine.Settlement{Dead: true, Error: "no such address"}))

	dead, _ := store.Dead(ctx, "mail/urgent", 10)
	fmt.Println(dead[0].Ref, dead[0].Error)
	fmt.Println(store.Requeue(ctx, dead[0].Ref))
	lanes, _ := store.Lanes(ctx, "mail/")
	depth, _ := store.Depth(ctx, "mail/urgent")
	fmt.Println(lanes, depth.Due, depth.Dead)
	// Output:
	// <nil>
	// <nil>
	// t1/1/0 no such address
	// <nil>
	// [mail/urgent] 1 0
}

// A worker that has nothing to do waits for a hint, and looks now and then without one.
func ExampleStore_Listen() {
	ctx, cancel := context.WithCancel(context.Background())
	store := memstore.New(memstore.Options{})
	wake, err := store.Listen(ctx, "wake")
	fmt.Println(err)
	fmt.Println(store.Notify(ctx, "wake", []byte("mail/urgent")))
	fmt.Printf("%s\n", <-wake)
	cancel()
	_, open := <-wake
	fmt.Println(open)
	// Output:
	// <nil>
	// <nil>
	// mail/urgent
	// false
}
