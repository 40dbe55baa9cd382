package bolt_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/bolt"
)

func Example() {
	folder, err := os.MkdirTemp("", "threads")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "threads.db")
	ctx := context.Background()

	store, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	revision, err := store.Append(ctx, engine.JournalCommit{ID: [16]byte{1}, Thread: "t1", Record: []byte("\x01hello")})
	fmt.Println(revision, err)
	fmt.Println(store.Close())

	store, err = bolt.Open(path, bolt.Options{Timeout: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	image, err := store.Load(ctx, "t1", 0)
	fmt.Printf("%d %q %v\n", image.Revision, image.Tail[0].Record, err)
	// Output:
	// 1 <nil>
	// <nil>
	// 1 "\x01hello" <nil>
}

func ExampleVerify() {
	folder, err := os.MkdirTemp("", "threads")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "threads.db")
	store, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for base := range uint64(3) {
		_, err := store.Append(context.Background(), engine.JournalCommit{ID: [16]byte{byte(base + 1)}, Thread: "t1", Base: base})
		if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(store.Close())
	report, err := bolt.Verify(path, bolt.Options{})
	fmt.Println(report.Threads, report.Records, len(report.Faults), err)
	// Output:
	// <nil>
	// 1 3 0 <nil>
}
