package natstest_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/nats"
	"github.com/ddd26017/fixpoint/store/nats/natstest"
)

// Two processes, here two stores, share threads and their effects.
func Example() {
	folder, err := os.MkdirTemp("", "nats")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	servers, err := natstest.New(folder, 1, func(*server.Options) {})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer servers.Close()

	ctx := context.Background()
	o := nats.Options{Replicas: 1, Monitors: servers.Monitors()} // a cluster has 3 replicas
	one, err := nats.Open(ctx, servers.URL(), o)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer one.Close()
	other, err := nats.Open(ctx, servers.URL(), o)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer other.Close()

	revision, err := one.Append(ctx, store.Commit{
		ID: [16]byte{1}, Thread: "t1", Record: []byte("\x01hello"),
		Effects: []store.Effect{{Lane: "mail", Body: []byte("to ann")}},
	})
	fmt.Println(revision, err)

	image, err := other.Load(ctx, "t1", 1)
	fmt.Printf("%d %q %v\n", image.Revision, image.Tail[0].Record, err)
	claims, err := other.Claim(ctx, "mail", "worker 1", 10, time.Minute)
	for _, c := range claims {
		fmt.Printf("%s %q %v\n", c.Ref, c.Effect.Body, other.Settle(ctx, c, store.Settlement{}))
	}
	fmt.Println(err)
	// Output:
	// 1 <nil>
	// 1 "\x01hello" <nil>
	// t1/1/0 "to ann" <nil>
	// <nil>
}
