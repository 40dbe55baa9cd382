//go:build unix

package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/internal/faults/servers"
	"github.com/ddd26017/fixpoint/internal/faults/talk"
	"github.com/ddd26017/fixpoint/store"
)

// servedLanes are those of the effects on a server.
var servedLanes = []string{"mail/0", "mail/1"}

// claimTime is how long the effects of a dead dispatcher stay with it.
const claimTime = 2 * time.Second

// ServedDispatcher is Dispatcher for a store on a server. It has one goroutine that claims,
// so that it can tell the order in which the store hands out.
var ServedDispatcher = child.Part{Name: "outbox served dispatcher", Run: func(ctx context.Context, args []string) error {
	var address servers.Address
	if err := json.Unmarshal([]byte(args[0]), &address); err != nil {
		return err
	}
	j, err := address.Open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(drainServed(ctx, j, args[1], talk.NewVoice(os.Stdout)), j.Close())
}}

// said is what a dispatcher tells: that it claimed, delivered or settled.
type said struct {
	Word     string `json:"word"`
	Lane     string `json:"lane,omitempty"`
	Key      string `json:"key"`
	Body     string `json:"body,omitempty"`
	Attempts int    `json:"attempts,omitempty"`
}

func drainServed(ctx context.Context, j servers.Store, name string, say *talk.Voice) error {
	for {
		none := true
		for _, lane := range servedLanes {
			claims, err := j.Claim(ctx, lane, name, 4*workers, claimTime)
			if err != nil {
				return err
			}
			for _, c := range claims {
				say.Say(said{Word: "claim", Lane: lane, Key: c.Ref.String(), Attempts: c.Attempts})
			}
			if err := deliverAll(ctx, j, claims, say); err != nil {
				return err
			}
			none = none && len(claims) == 0
		}
		if !none {
			continue
		}
		left, err := j.Lanes(ctx, "mail/")
		if err != nil || len(left) == 0 {
			return err
		}
		time.Sleep(20 * time.Millisecond) // until the claims of the dead run out
	}
}

// deliverAll delivers and settles claims, several at the same time.
func deliverAll(ctx context.Context, j servers.Store, claims []engine.Claim, say *talk.Voice) error {
	var group sync.WaitGroup
	failures := make([]error, workers)
	for n := range workers {
		group.Go(func() {
			for i := n; i < len(claims); i += workers {
				c := claims[i]
				say.Say(said{Word: "deliver", Key: c.Ref.String(), Body: string(c.Effect.Body)})
				switch err := j.Settle(ctx, c, store.Settlement{}); {
				case errors.Is(err, store.ErrFenced): // it took too long, and comes again
				case err != nil:
					failures[n] = err
					return
				default:
					say.Say(said{Word: "settle", Key: c.Ref.String()})
				}
			}
		})
	}
	group.Wait()
	return errors.Join(failures...)
}

// order finds first claims that come before others that the thread's commits put ahead of
// them. A claim that its dispatcher never heard of is none that it could be compared with.
type order map[string]engine.EffectRef

func (o order) claimed(r *receiver, s said) {
	ref, err := engine.ParseEffectRef(s.Key)
	if err != nil {
		r.fault("claimed with a key that is none: %w", err)
		return
	}
	if s.Attempts > 1 {
		return
	}
	place := s.Lane + " " + ref.Thread
	if last, is := o[place]; is && (ref.Revision < last.Revision || ref.Revision == last.Revision && ref.Index <= last.Index) {
		r.fault("%s of lane %s was handed out after %s", ref, s.Lane, last)
	}
	o[place] = ref
}

// RunServed is Run with a store on a server.
func RunServed(ctx context.Context, server *servers.Server, p Plan) (Figures, error) {
	f := Figures{Plan: p}
	address := server.Address("outbox")
	j, err := address.Open(ctx)
	if err != nil {
		return f, err
	}
	emitted, err := emit(ctx, j, &f, servedLanes...)
	if err := errors.Join(err, j.Close()); err != nil {
		return f, err
	}
	argument, err := json.Marshal(address)
	if err != nil {
		return f, err
	}
	random := rand.New(rand.NewPCG(p.Seed, 17))
	r, handed := newReceiver(), order{}
	for {
		cmd, err := ServedDispatcher.Command(ctx, string(argument), fmt.Sprint("dispatcher ", f.Deaths))
		if err != nil {
			return f, err
		}
		peer, err := talk.Start(cmd)
		if err != nil {
			return f, err
		}
		if err := r.hear(peer, handed, 1+random.IntN(2*p.Every)); err != nil {
			return f, errors.Join(err, peer.Kill())
		}
		killed, err := peer.Gone()
		if err != nil {
			return f, err
		}
		if !killed {
			break // nothing was left
		}
		f.Deaths++
	}
	r.tally(emitted, &f)
	return f, errors.Join(r.faults...)
}

// hear takes what a dispatcher tells, and kills it after so many deliveries.
func (r *receiver) hear(peer *talk.Peer, handed order, after int) error {
	for n := 0; ; {
		var s said
		switch err := peer.Hear(&s); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		switch s.Word {
		case "claim":
			handed.claimed(r, s)
		case "deliver":
			r.deliver(delivery{s.Key, s.Body})
			if n++; n == after {
				if err := peer.Kill(); err != nil {
					return err
				}
			}
		case "settle":
			r.settle(s.Key)
		default:
			return fmt.Errorf("outbox: the dispatcher said %+v", s)
		}
	}
}
