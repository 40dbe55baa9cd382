package outbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/store/bolt"
)

const (
	lane    = "mail"
	workers = 8
	batch   = 25
	ttl     = time.Minute
)

// Dispatcher is the child process: it delivers what is due in a file, on its standard
// output, until nothing is, or until it is killed.
var Dispatcher = child.Part{Name: "outbox dispatcher", Run: func(ctx context.Context, args []string) error {
	number, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	// Each child lives an hour after the one before, so that its claims have run out.
	now := func() time.Time { return time.Now().Add(time.Duration(number) * time.Hour) }
	j, err := bolt.Open(args[0], bolt.Options{Now: now})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	tell := func(word, key, body string) error {
		mu.Lock()
		defer mu.Unlock()
		_, err := fmt.Fprintf(os.Stdout, "%s %s %s\n", word, key, body)
		return err
	}
	return errors.Join(drain(ctx, j, args[1],
		func(d delivery) error { return tell("deliver", d.key, d.body) },
		func(key string) error { return tell("settle", key, "-") }), j.Close())
}}

// drain delivers and settles until nothing is due. An error of deliver ends a worker in
// between the two, as a death does.
func drain(ctx context.Context, o engine.Outbox, name string, deliver func(delivery) error, settled func(key string) error) error {
	failures := make([]error, workers)
	var group sync.WaitGroup
	for n := range workers {
		group.Go(func() {
			for {
				claims, err := o.Claim(ctx, lane, fmt.Sprintf("%s-%d", name, n), batch, ttl)
				if err != nil || len(claims) == 0 {
					failures[n] = err
					return
				}
				for _, c := range claims {
					key := c.Ref.String()
					err := deliver(delivery{key, string(c.Effect.Body)})
					if err == nil {
						err = o.Settle(ctx, c, engine.Settlement{})
					}
					if err == nil {
						err = settled(key)
					}
					if err != nil {
						failures[n] = err
						return
					}
				}
			}
		})
	}
	group.Wait()
	return errors.Join(failures...)
}

// listen takes what a dispatcher tells, and calls kill after so many deliveries; 0 is
// never. A last line that was cut off counts for nothing.
func (r *receiver) listen(out io.Reader, after int, kill func() error) error {
	lines := bufio.NewReader(out)
	for n := 0; ; {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		key, body, ok := strings.Cut(rest, " ")
		switch {
		case ok && word == "deliver":
			r.deliver(delivery{key, body})
			if n++; n == after {
				if err := kill(); err != nil {
					return err
				}
			}
		case ok && word == "settle":
			r.settle(key)
		default:
			return fmt.Errorf("outbox: the dispatcher said %q", line)
		}
	}
}
