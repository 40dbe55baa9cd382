//go:build servers

package natstest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/nats"
	"github.com/ddd26017/fixpoint/store/nats/natstest"
	"github.com/ddd26017/fixpoint/store/storetest"
)

// observed is what writers and readers saw while leaders were killed.
type observed struct {
	mu      sync.Mutex
	acks    []storetest.Ack
	newest  map[string]uint64 // acknowledged
	last    time.Time
	gap     time.Duration // longest time without any acknowledgement
	loads   int
	stale   []string
	unknown int
}

func (o *observed) ack(a storetest.Ack) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if !o.last.IsZero() {
		o.gap = max(o.gap, now.Sub(o.last))
	}
	o.last = now
	o.acks = append(o.acks, a)
	o.newest[a.Thread] = max(o.newest[a.Thread], a.Revision)
}

func (o *observed) acked(thread string) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.newest[thread]
}

func isUnknown(err error) bool { return errors.Is(err, store.ErrUnknownOutcome) }

// counting counts the unknown outcomes that reach the writers.
type counting struct {
	store.Journal
	seen *observed
}

func (c counting) Append(ctx context.Context, commit store.Commit) (uint64, error) {
	revision, err := c.Journal.Append(ctx, commit)
	if isUnknown(err) && ctx.Err() == nil {
		c.seen.mu.Lock()
		c.seen.unknown++
		c.seen.mu.Unlock()
	}
	return revision, err
}

// The leader of the stream is killed, again and again, under 16 writers. No acknowledged
// commit is lost, no thread forks, and no load is older than what was acknowledged before
// it began.
//
// FIXPOINT_KILLS=100 kills so often instead of three times.
func TestLeaderKills(t *testing.T) {
	kills, err := strconv.Atoi(os.Getenv("FIXPOINT_KILLS"))
	if err != nil {
		kills = 3
	}
	servers := natstest.StartProcesses(t, 3)
	system, err := client.Connect(servers.SystemURL(), client.RetryOnFailedConnect(true), client.MaxReconnects(-1), client.ReconnectWait(50*time.Millisecond))
	require.NoError(t, err)
	defer system.Close()
	control, err := client.Connect(servers.URL(), client.RetryOnFailedConnect(true), client.MaxReconnects(-1), client.ReconnectWait(50*time.Millisecond))
	require.NoError(t, err)
	defer control.Close()
	js, err := jetstream.New(control)
	require.NoError(t, err)
	o := nats.Options{Stream: "KILLS", System: system, Patience: time.Minute}
	require.Eventually(t, func() bool { return whoLeads(t.Context(), js, "") != "" }, time.Minute, 50*time.Millisecond, "the servers find together")

	j, err := nats.Open(t.Context(), servers.URL(), o)
	require.NoError(t, err)
	defer j.Close()
	require.Equal(t, store.Caps{Synced: true, Replicas: 3, MultiProcess: true, MaxBytes: 8 << 20}, j.Caps())

	seen := &observed{newest: map[string]uint64{}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	threads := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	var workers sync.WaitGroup
	failures := make([]error, 7)
	workers.Go(func() {
		work := storetest.Work{Threads: threads, Writers: 16, Seed: uint64(kills), Every: 50}
		failures[0] = work.Run(ctx, counting{j, seen}, seen.ack)
	})
	for n := range 3 {
		workers.Go(func() { failures[n+1] = seen.read(ctx, j, threads) })
	}
	// Effects come from two more, and go to another process's store.
	other, err := nats.Open(t.Context(), servers.URL(), o)
	require.NoError(t, err)
	defer other.Close()
	effects := &deliveries{delivered: map[store.EffectRef]int{}, settled: map[store.EffectRef]bool{}}
	for n, thread := range []string{"fx", "fxfx"} {
		workers.Go(func() { failures[n+4] = effects.emit(ctx, j, thread) })
	}
	workers.Go(func() { failures[6] = effects.deliver(ctx, other, false) })

	for kill := range kills {
		leader := ""
		require.Eventually(t, func() bool { leader = whoLeads(t.Context(), js, o.Stream); return leader != "" }, time.Minute, 20*time.Millisecond, "kill %d: all replicas are there", kill)
		seen.mu.Lock()
		before := len(seen.acks)
		seen.mu.Unlock()
		<-time.After(rand.N(500 * time.Millisecond))
		servers.Kill(servers.Index(leader))
		require.Eventually(t, func() bool {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			return len(seen.acks) > before+100 && time.Since(seen.last) < time.Second
		}, time.Minute, 20*time.Millisecond, "kill %d: writers go on without %s", kill, leader)
		servers.Start(t, servers.Index(leader))
		if kill%10 == 9 {
			seen.mu.Lock()
			t.Logf("%d kills, %d acknowledged, %d loads, %d of them stale, longest gap %s", kill+1, len(seen.acks), seen.loads, len(seen.stale), seen.gap)
			seen.mu.Unlock()
		}
	}
	stop()
	workers.Wait()
	for _, err := range failures {
		require.NoError(t, err)
	}
	check, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	require.NoError(t, storetest.Check(check, j, seen.acks))
	require.Empty(t, seen.stale)

	t.Logf("%d acknowledged commits are there, and no others in their places", len(seen.acks))
	fresh, err := nats.Open(check, servers.URL(), o) // which knows of all that was acknowledged
	require.NoError(t, err)
	defer fresh.Close()
	drain, drained := context.WithTimeout(t.Context(), 3*time.Minute)
	defer drained()
	before, err := fresh.Depth(drain, "mail")
	require.NoError(t, err)
	err = effects.deliver(drain, fresh, true)
	after, _ := fresh.Depth(t.Context(), "mail")
	require.NoError(t, err, "%+v were left, and %+v in the end", before, after)
	for _, ref := range effects.emitted {
		if effects.delivered[ref] == 0 {
			t.Errorf("%s was not delivered; the stream has of it: %s", ref, inStream(t, js, o.Stream, ref))
		}
	}
	require.Empty(t, effects.wrong)
	twice := 0
	for _, ref := range effects.emitted {
		if effects.delivered[ref] > 1 {
			twice++
		}
	}
	t.Logf("%d kills of the leader: %d acknowledged commits, none lost, no fork; %d loads, none stale; %d effects, none lost, none delivered after it was settled, %d more than once; %d unknown outcomes that the caller repeated; longest gap %s",
		kills, len(seen.acks), seen.loads, len(effects.emitted), twice, seen.unknown, seen.gap.Round(time.Millisecond))
}

// read loads threads at what was acknowledged last.
func (o *observed) read(ctx context.Context, j store.Journal, threads []string) error {
	for n := 0; ctx.Err() == nil; n++ {
		thread := threads[n%len(threads)]
		atLeast := o.acked(thread)
		image, err := j.Load(ctx, thread, atLeast)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("load %s: %w", thread, err)
		}
		o.mu.Lock()
		o.loads++
		if image.Revision < atLeast {
			o.stale = append(o.stale, fmt.Sprintf("%s at %d, acknowledged was %d", thread, image.Revision, atLeast))
		}
		o.mu.Unlock()
	}
	return nil
}

// deliveries are the effects that were emitted, delivered and settled while leaders were
// killed.
type deliveries struct {
	mu        sync.Mutex
	emitted   []store.EffectRef // with a commit that was acknowledged
	delivered map[store.EffectRef]int
	settled   map[store.EffectRef]bool
	wrong     []string
}

// emit appends commits with two effects each to a thread of its own.
func (d *deliveries) emit(ctx context.Context, j store.Journal, thread string) error {
	random := rand.New(rand.NewPCG(1, uint64(len(thread))))
	for base := uint64(0); ctx.Err() == nil; base++ {
		c := store.Commit{Thread: thread, Base: base, Record: []byte{1}, Effects: []store.Effect{{Lane: "mail"}, {Lane: "mail"}}}
		for i := range c.ID {
			c.ID[i] = byte(random.Uint32())
		}
		_, err := j.Append(ctx, c)
		for isUnknown(err) && ctx.Err() == nil {
			_, err = j.Append(ctx, c)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("append to %s at %d: %w", thread, base, err)
		}
		d.mu.Lock()
		for i := range c.Effects {
			d.emitted = append(d.emitted, store.EffectRef{Thread: thread, Revision: base + 1, Index: uint32(i)})
		}
		d.mu.Unlock()
	}
	return nil
}

// deliver claims and settles until ctx ends or, when drain is set, nothing is left.
func (d *deliveries) deliver(ctx context.Context, j *nats.Journal, drain bool) error {
	for ctx.Err() == nil {
		claims, err := j.Claim(ctx, "mail", "w", 8, 10*time.Second)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("claim: %w", err)
		}
		if drain && len(claims) == 0 {
			depth, err := j.Depth(ctx, "mail")
			if err != nil || depth.Due+depth.Claimed+depth.Waiting == 0 {
				return err
			}
		}
		if len(claims) == 0 {
			<-time.After(5 * time.Millisecond)
		}
		for _, c := range claims {
			d.mu.Lock()
			d.delivered[c.Ref]++
			if d.settled[c.Ref] {
				d.wrong = append(d.wrong, c.Ref.String()+" was delivered after it was settled")
			}
			d.mu.Unlock()
			err := j.Settle(ctx, c, store.Settlement{})
			switch {
			case err == nil:
				d.mu.Lock()
				d.settled[c.Ref] = true
				d.mu.Unlock()
			case !errors.Is(err, store.ErrFenced) && ctx.Err() == nil:
				return fmt.Errorf("settle %s: %w", c.Ref, err)
			}
		}
	}
	return nil
}

// inStream says what a stream has of an effect.
func inStream(t *testing.T, js jetstream.JetStream, name string, ref store.EffectRef) string {
	stream, err := js.Stream(t.Context(), name)
	require.NoError(t, err)
	subject := fmt.Sprintf("%s.e.%s.%d.%d.s", strings.ToLower(name), ref.Thread, ref.Revision, ref.Index)
	msg, err := stream.GetLastMsgForSubject(t.Context(), subject)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("message %d of %s: %v", msg.Sequence, msg.Time, msg.Header)
}

// whoLeads returns the leader of a stream that has all its replicas, or "". Of no stream it
// says whether JetStream answers.
func whoLeads(ctx context.Context, js jetstream.JetStream, name string) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if name == "" {
		if _, err := js.AccountInfo(ctx); err != nil {
			return ""
		}
		return "any"
	}
	s, err := js.Stream(ctx, name)
	if err != nil || s.CachedInfo().Cluster == nil || len(s.CachedInfo().Cluster.Replicas) != 2 {
		return ""
	}
	for _, replica := range s.CachedInfo().Cluster.Replicas {
		if replica.Offline || !replica.Current {
			return ""
		}
	}
	return s.CachedInfo().Cluster.Leader
}
