package natstest_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/store"
	"github.com/ddd26017/fixpoint/store/nats"
	"github.com/ddd26017/fixpoint/store/nats/natstest"
)

func commit(id byte, thread string, base uint64, effects ...string) store.Commit {
	c := store.Commit{ID: [16]byte{id, byte(base + 1)}, Thread: thread, Base: base, Record: []byte{1}}
	for _, lane := range effects {
		c.Effects = append(c.Effects, store.Effect{Lane: lane, Body: []byte(lane)})
	}
	return c
}

func put(t testing.TB, j store.Journal, c store.Commit) {
	t.Helper()
	_, err := j.Append(t.Context(), c)
	require.NoError(t, err)
}

// depth waits until a store knows so much of a lane.
func depth(t testing.TB, j *nats.Journal, lane string, due, claimed, dead int) {
	t.Helper()
	require.Eventually(t, func() bool {
		d, err := j.Depth(t.Context(), lane)
		require.NoError(t, err)
		return d.Due == due && d.Claimed == claimed && d.Dead == dead
	}, 20*time.Second, 2*time.Millisecond)
}

// subjects returns how many messages the stream has of each subject that begins so.
func subjects(t testing.TB, servers *natstest.Servers, j *nats.Journal, filter string) map[string]uint64 {
	t.Helper()
	js, err := jetstream.New(connect(t, servers.URL()))
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), j.Stream())
	require.NoError(t, err)
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(strings.ToLower(j.Stream())+"."+filter))
	require.NoError(t, err)
	return info.State.Subjects
}

// What one process does to the outbox, the other learns.
func TestOutboxOfTwo(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	o := nats.Options{Replicas: 1, AssumeSynced: true}
	a, b := open(t, servers, o), open(t, servers, o)
	depth(t, b, "mail", 0, 0, 0) // b listens from here on

	put(t, a, commit(1, "t", 0, "mail", "mail", "mail", "mail", "fax"))
	depth(t, b, "mail", 4, 0, 0)
	claims, err := b.Claim(t.Context(), "mail", "b", 3, time.Hour)
	require.NoError(t, err)
	require.Len(t, claims, 3)
	depth(t, a, "mail", 1, 3, 0) // and so does a
	require.NoError(t, b.Settle(t.Context(), claims[0], store.Settlement{}))
	require.NoError(t, b.Settle(t.Context(), claims[1], store.Settlement{Dead: true, Error: strings.Repeat("x", 1<<20)}))
	depth(t, a, "mail", 1, 1, 1)
	dead, err := a.Dead(t.Context(), "mail", 10)
	require.NoError(t, err)
	require.Len(t, dead, 1)
	require.Equal(t, claims[1].Ref, dead[0].Ref)
	require.Len(t, dead[0].Error, 4<<10, "an error's text is cut")
	require.NoError(t, a.Requeue(t.Context(), dead[0].Ref))
	depth(t, b, "mail", 2, 1, 0)

	// A commit of a process that never looked at the outbox settles.
	c := open(t, servers, o)
	settles := commit(2, "u", 0)
	settles.Settles = []store.EffectRef{claims[1].Ref, claims[2].Ref, claims[2].Ref, {Thread: "nobody", Revision: 9}}
	put(t, c, settles)
	depth(t, a, "mail", 1, 0, 0)
	depth(t, b, "mail", 1, 0, 0)
	require.NoError(t, b.Settle(t.Context(), claims[2], store.Settlement{}), "it is settled already")
	require.ErrorIs(t, b.Settle(t.Context(), claims[2], store.Settlement{Dead: true}), store.ErrFenced)

	require.NoError(t, c.Delete(t.Context(), "t"))
	depth(t, a, "mail", 0, 0, 0)
	depth(t, b, "mail", 0, 0, 0)
	lanes, err := b.Lanes(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, lanes)
}

// Many processes that serve one lane get each effect once, in the order of its thread.
func TestWorkersOfMany(t *testing.T) {
	t.Parallel()
	servers := natstest.StartWith(t, 1, func(o *server.Options) { o.SyncAlways = false })
	o := nats.Options{Replicas: 1, AssumeSynced: true}
	const processes, threads, each = 6, 20, 10
	stores := make([]*nats.Journal, processes)
	for n := range stores {
		stores[n] = open(t, servers, o)
	}
	for n := range threads {
		for base := range uint64(each) {
			put(t, stores[n%processes], commit(byte(n), fmt.Sprint("t", n), base, "mail"))
		}
	}
	var mu sync.Mutex
	delivered := map[store.EffectRef]int{}
	var group sync.WaitGroup
	for _, j := range stores {
		group.Go(func() {
			for {
				claims, err := j.Claim(t.Context(), "mail", "w", 4, time.Hour)
				if err != nil {
					t.Error(err)
					return
				}
				last := map[string]uint64{}
				for _, c := range claims {
					if c.Ref.Revision <= last[c.Ref.Thread] {
						t.Errorf("%s came after revision %d", c.Ref, last[c.Ref.Thread])
					}
					last[c.Ref.Thread] = c.Ref.Revision
					mu.Lock()
					delivered[c.Ref]++
					mu.Unlock()
					if err := j.Settle(t.Context(), c, store.Settlement{}); err != nil {
						t.Error(err)
					}
				}
				d, err := j.Depth(t.Context(), "mail")
				if err != nil || d == (store.Depth{}) {
					return
				}
			}
		})
	}
	group.Wait()
	require.Len(t, delivered, threads*each)
	for ref, n := range delivered {
		require.Equal(t, 1, n, ref)
	}
}

// A user who may not purge breaks a deletion off in the middle. Others see no thread, and
// finish it.
func TestDeleteBrokenOff(t *testing.T) {
	t.Parallel()
	servers := natstest.StartWith(t, 1, func(o *server.Options) {
		deny := &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"$JS.API.STREAM.PURGE.>"}}}
		o.Users = []*server.User{{Username: "all", Password: "all"}, {Username: "weak", Password: "weak", Permissions: deny}}
		o.NoAuthUser = "all"
	})
	o := nats.Options{Replicas: 1, AssumeSynced: true, Patience: 4 * time.Second}
	strong := open(t, servers, o)
	o.Connect = []client.Option{client.UserInfo("weak", "weak")}
	weak := open(t, servers, o)
	for n, finish := range []func(thread string){
		func(thread string) { put(t, strong, commit(2, thread, 0, "mail")) },
		func(thread string) {
			lease, err := strong.Acquire(t.Context(), thread, "bob", time.Hour)
			require.NoError(t, err)
			require.EqualValues(t, 1, lease.Epoch)
		},
		func(thread string) { require.NoError(t, strong.Delete(t.Context(), thread)) },
	} {
		thread := fmt.Sprint("t", n)
		lease, err := strong.Acquire(t.Context(), thread, "ann", time.Hour)
		require.NoError(t, err)
		c := commit(1, thread, 1, "mail", "mail")
		c.Epoch = lease.Epoch
		put(t, strong, c)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		require.Error(t, weak.Delete(ctx, thread))
		cancel()

		image, err := strong.Load(t.Context(), thread, 0)
		require.NoError(t, err)
		require.Equal(t, store.Image{}, image)
		_, err = strong.LoadAt(t.Context(), thread, 1)
		require.ErrorIs(t, err, store.ErrNoRevision)
		require.NoError(t, strong.Prune(t.Context(), thread, store.PrunePolicy{KeepSnapshots: 1}))
		finish(thread)
		require.Empty(t, subjects(t, servers, strong, "l."+thread+".>"))
	}
	depth(t, strong, "mail", 1, 0, 0) // of the thread that was made anew
	ids, err := strong.Threads(t.Context(), "", 10)
	require.NoError(t, err)
	require.Equal(t, []string{"t0", "t1"}, ids)
	require.NoError(t, strong.Delete(t.Context(), "t0"))
	require.NoError(t, strong.Delete(t.Context(), "t1"))
	for _, kind := range []string{"j.>", "l.>", "b.>", "e.*.*.>"} {
		require.Empty(t, subjects(t, servers, strong, kind))
	}
}

// What is large goes in parts, which go with their records.
func TestParts(t *testing.T) {
	t.Parallel()
	servers := natstest.StartWith(t, 1, func(o *server.Options) { o.SyncAlways, o.MaxPayload = false, 80<<10 })
	j := open(t, servers, nats.Options{Replicas: 1, AssumeSynced: true})
	large := make([]byte, 300<<10)
	for i := range large {
		large[i] = byte(i * 11 >> 4)
	}
	for base := range uint64(3) {
		c := commit(1, "t", base, "mail")
		c.Record, c.Snapshot, c.Effects[0].Body = large[base:], large[:len(large)-int(base)], large
		put(t, j, c)
		put(t, j, c)
	}
	image, err := j.LoadAt(t.Context(), "t", 2)
	require.NoError(t, err)
	require.Equal(t, large[:len(large)-1], image.Snapshot)
	require.Len(t, subjects(t, servers, j, "b.>"), 24)
	require.NoError(t, j.Prune(t.Context(), "t", store.PrunePolicy{KeepSnapshots: 1}))
	require.Len(t, subjects(t, servers, j, "b.>"), 8)
	image, err = j.Load(t.Context(), "t", 3)
	require.NoError(t, err)
	require.Equal(t, large[:len(large)-2], image.Snapshot)
	claims, err := j.Claim(t.Context(), "mail", "w", 10, time.Hour)
	require.NoError(t, err)
	require.Len(t, claims, 3)
	for _, c := range claims {
		require.Equal(t, large, c.Effect.Body)
	}

	many := commit(2, "u", 0)
	for range 251 {
		many.Effects = append(many.Effects, store.Effect{Body: large})
	}
	_, err = j.Append(t.Context(), many)
	require.ErrorIs(t, err, store.ErrTooLarge)
	_, err = j.Append(t.Context(), commit(3, strings.Repeat("日", 200), 0))
	require.ErrorIs(t, err, store.ErrTooLarge)
	_, err = nats.Open(t.Context(), servers.URL(), nats.Options{Replicas: 1, AssumeSynced: true, MaxBytes: 64 << 20})
	require.ErrorContains(t, err, "MaxBytes")
}

// proxy stands between a store and its server, and can lose the answers.
type proxy struct {
	listener net.Listener
	deaf     atomic.Bool
}

func newProxy(t testing.TB, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", strings.TrimPrefix(to, "nats://"))
			if err != nil {
				_ = near.Close()
				return
			}
			go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
			go func() { _, _ = io.Copy(p.answers(near), far); _ = near.Close() }()
		}
	}()
	return p
}

// answers passes on what the server says, unless it is to get lost.
func (p *proxy) answers(to io.Writer) io.Writer { return deafWriter{p, to} }

type deafWriter struct {
	p  *proxy
	to io.Writer
}

func (w deafWriter) Write(b []byte) (int, error) {
	if w.p.deaf.Load() {
		return len(b), nil
	}
	return w.to.Write(b)
}

// A commit whose answer got lost has an unknown outcome. It may have landed, and a repeat
// finds that out, whoever has written meanwhile.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	p := newProxy(t, servers.URL())
	o := nats.Options{Replicas: 1, AssumeSynced: true, Patience: 2 * time.Second}
	far, err := nats.Open(t.Context(), "nats://"+p.listener.Addr().String(), o)
	require.NoError(t, err)
	defer far.Close()
	o.Patience = 0
	near := open(t, servers, o)
	put(t, far, commit(1, "t", 0))
	put(t, far, commit(1, "u", 0))

	p.deaf.Store(true)
	lost := commit(1, "t", 1, "mail")
	_, err = far.Append(t.Context(), lost)
	require.ErrorIs(t, err, store.ErrUnknownOutcome)
	require.ErrorContains(t, err, "Patience")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	_, err = far.Append(ctx, commit(1, "u", 1))
	require.ErrorIs(t, err, store.ErrUnknownOutcome)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	cancel()
	_, err = far.Load(t.Context(), "t", 0)
	require.Error(t, err)
	require.NotErrorIs(t, err, store.ErrUnknownOutcome, "a read has no outcome")

	image, err := near.Load(t.Context(), "t", 2)
	require.NoError(t, err, "it has landed")
	require.Equal(t, lost.ID, image.LastID)
	put(t, near, commit(2, "t", 2))
	put(t, near, lost) // also when it is not the newest any more
	claims, err := near.Claim(t.Context(), "mail", "w", 10, time.Hour)
	require.NoError(t, err)
	require.Len(t, claims, 1, "its effect is there once")
}
