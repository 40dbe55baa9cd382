package storetest_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ddd26017/fixpoint/store/memstore"
	"github.com/ddd26017/fixpoint/store/storetest"
)

// A store's conformance test is one call.
func ExampleRun() {
	_ = func(t *testing.T) { // TestConformance of the store's package
		storetest.Run(t, func(t *testing.T) storetest.Fixture {
			return storetest.Fixture{Journal: memstore.New(memstore.Options{})}
		})
	}
	// Output:
}

// The kit's workload on its own: here in one process, elsewhere in one that is killed.
func ExampleServe() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	work := storetest.Work{Threads: []string{"a", "b"}, Writers: 4, Commits: 5}
	var out bytes.Buffer
	fmt.Println(storetest.Serve(ctx, store, strings.NewReader(work.Job()), &out))
	acks, err := storetest.ReadAcks(&out)
	fmt.Println(len(acks), err, storetest.Check(ctx, store, acks))
	// Output:
	// <nil>
	// 20 <nil> <nil>
}
