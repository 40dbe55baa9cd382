package storetest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// process is a child that the kit talks to.
type process struct {
	jobs  *io.PipeWriter
	acks  *bufio.Reader
	ended chan error
}

func (f Fixture) hasChild(t *testing.T) {
	t.Helper()
	if f.Child == nil {
		t.Fatal("Caps.MultiProcess is set, and Fixture.Child is nil")
	}
}

// start starts a child. It ends with the test at the latest.
func start(t *testing.T, f Fixture) *process {
	t.Helper()
	f.hasChild(t)
	in, jobs := io.Pipe()
	acks, out := io.Pipe()
	p := &process{jobs: jobs, acks: bufio.NewReader(acks), ended: make(chan error, 1)}
	ctx := ctxOf(t)
	context.AfterFunc(ctx, func() { // a child that hangs is not waited for
		_ = in.CloseWithError(context.Cause(ctx))
		_ = out.CloseWithError(context.Cause(ctx))
	})
	go func() {
		err := f.Child(ctx, in, out)
		_ = in.CloseWithError(errors.Join(errors.New("the child has ended"), err))
		_ = out.Close()
		p.ended <- err
	}()
	t.Cleanup(func() {
		_ = jobs.Close()
		_, _ = io.Copy(io.Discard, p.acks)
	})
	return p
}

// send gives the child a job.
func (p *process) send(t *testing.T, job string) {
	t.Helper()
	_, err := io.WriteString(p.jobs, job)
	noError(t, err, "send a child the job %q", job)
}

// next waits for the child's next acknowledgement.
func (p *process) next(t *testing.T) Ack {
	t.Helper()
	a, err := readAck(p.acks)
	if errors.Is(err, io.EOF) {
		t.Fatalf("the child has ended: %v", <-p.ended)
	}
	noError(t, err, "child")
	return a
}

// end waits for the child's end and returns what it acknowledged and was not read.
func (p *process) end(t *testing.T) []Ack {
	t.Helper()
	_ = p.jobs.Close()
	acks, err := ReadAcks(p.acks)
	noError(t, err, "acknowledgements of a child")
	noError(t, <-p.ended, "child")
	return acks
}

var processTests = []test{
	{"one winner a revision", func(t *testing.T, f Fixture) {
		f.hasChild(t)
		const children = 3
		ctx := ctxOf(t)
		outs := make([]bytes.Buffer, children)
		failures := make([]error, children)
		var group sync.WaitGroup
		for n := range children {
			w := Work{Threads: []string{"a", "b"}, Writers: 4, Commits: 25, Seed: uint64(n) + 100}
			group.Go(func() { failures[n] = f.Child(ctx, strings.NewReader(w.Job()), &outs[n]) })
		}
		own, err := runWork(ctx, f.Journal, Work{Threads: []string{"a", "b"}, Writers: 4, Commits: 25, Seed: 1})
		noError(t, err, "work of the parent")
		group.Wait()
		all := own
		for n := range children {
			noError(t, failures[n], "child %d", n)
			acks, err := ReadAcks(&outs[n])
			noError(t, err, "acknowledgements of child %d", n)
			equal(t, 100, len(acks), "acknowledged commits of child %d", n)
			all = append(all, acks...)
		}
		noError(t, Check(ctx, f.Journal, all), "check of all processes' commits")
	}},
	{"what one acknowledges another loads", func(t *testing.T, f Fixture) {
		child := start(t, f)
		for base := range uint64(20) {
			c := commit("mine", base)
			appendAll(t, f.Journal, c)
			child.send(t, loadJob("mine", base+1))
			equal(t, Ack{"mine", base + 1, c.ID}, child.next(t), "what a child loads after the parent's commit")
		}
		const commits = 60
		child.send(t, Work{Threads: []string{"theirs"}, Writers: 3, Commits: commits / 3, Seed: 7, Every: 9}.Job())
		for range commits {
			a := child.next(t)
			image := load(t, f.Journal, a.Thread, a.Revision)
			noError(t, checkChain(image), "load of at least %d", a.Revision)
			if image.Revision < a.Revision {
				t.Fatalf("load of at least %d returned revision %d", a.Revision, image.Revision)
			}
			if at := image.SnapshotAt; at < a.Revision {
				equal(t, a.ID, image.Tail[a.Revision-at-1].ID, "id of revision %d", a.Revision)
			}
		}
		equal(t, 0, len(child.end(t)), "more acknowledgements")
	}},
	{"a lease is taken over", func(t *testing.T, f Fixture) {
		leaser, ok := f.Journal.(store.Leaser)
		if !ok {
			t.Log("the store has no leases")
			return
		}
		child := start(t, f)
		long, err := leaser.Acquire(t.Context(), "held", "parent", time.Hour)
		noError(t, err, "acquire")
		child.send(t, acquireJob("held", "child"))
		equal(t, Ack{Thread: "held"}, child.next(t), "a child's answer while the parent has the lease")
		noError(t, leaser.Release(t.Context(), long), "release")
		child.send(t, acquireJob("held", "child"))
		equal(t, Ack{Thread: "held", Revision: 2}, child.next(t), "the child's lease after the parent's")

		_, short := f.ttl()
		old, err := leaser.Acquire(t.Context(), "t", "parent", short)
		noError(t, err, "acquire")
		c := commit("t", 1)
		c.Epoch = old.Epoch
		appendAll(t, f.Journal, c)
		f.wait(2 * short)
		child.send(t, acquireJob("t", "child"))
		equal(t, Ack{Thread: "t", Revision: 3}, child.next(t), "the child's lease when the parent's ran out")
		for _, base := range []uint64{2, 3} {
			zombie := commit("t", base)
			zombie.Epoch = old.Epoch
			_, err = f.Journal.Append(t.Context(), zombie)
			isError(t, err, "append of the former owner", store.ErrFenced, store.ErrConflict)
		}
		_, err = leaser.Renew(t.Context(), old, time.Hour)
		isError(t, err, "renew after a takeover", store.ErrFenced)
		isError(t, leaser.Release(t.Context(), old), "release after a takeover", store.ErrFenced)
		_, err = leaser.Acquire(t.Context(), "t", "parent", time.Hour)
		isError(t, err, "acquire of the child's lease", store.ErrLeaseHeld)
		equal(t, 3, load(t, f.Journal, "t", 3).Revision, "revision")
	}},
	{"an effect goes to one", func(t *testing.T, f Fixture) {
		outbox, ok := f.Journal.(store.Outbox)
		if !ok {
			t.Log("the store has no outbox")
			return
		}
		children := []*process{start(t, f), start(t, f)}
		const commits, effects = 12, 5
		for base := range uint64(commits) {
			appendAll(t, f.Journal, withEffects("t", base, "mail", effects))
		}
		for _, child := range children {
			child.send(t, drainJob("mail"))
		}
		delivered := map[string]uint64{}
		for {
			claims, err := outbox.Claim(ctxOf(t), "mail", "parent", 3, time.Hour)
			noError(t, err, "claim")
			if len(claims) == 0 {
				break
			}
			for _, c := range claims {
				settle(t, f.Journal, c, store.Settlement{})
				delivered[c.Ref.String()] += uint64(c.Attempts)
			}
		}
		for _, child := range children {
			for _, a := range child.end(t) {
				delivered[a.Thread] += a.Revision
			}
		}
		equal(t, commits*effects, len(delivered), "effects delivered")
		for ref, attempts := range delivered {
			equal(t, 1, attempts, "deliveries of %s", ref)
		}
	}},
	{"notices", func(t *testing.T, f Fixture) {
		if _, ok := f.Journal.(store.Notifier); !ok {
			t.Log("the store has no notices")
			return
		}
		child := start(t, f)
		topic, notices := "to the parent/a.*", 50
		heard := listen(t.Context(), t, f.Journal, topic)
		child.send(t, notifyJob(topic, notices))
		equal(t, Ack{Thread: topic, Revision: uint64(notices)}, child.next(t), "the child's answer")
		last := -1
		for last < 0 || len(heard) > 0 { // some may be missed, not all
			n, err := strconv.Atoi(string(hear(t, heard, "the parent")))
			noError(t, err, "notice")
			if n <= last {
				t.Fatalf("notice %d was heard after %d", n, last)
			}
			last = n
		}

		child.send(t, listenJob("to the child"))
		equal(t, Ack{Thread: "to the child"}, child.next(t), "the child listens")
		notify(t, f.Journal, "to the parent/a", []byte("of another topic"))
		notify(t, f.Journal, "to the child", []byte("hello\n\xff"))
		equal(t, Ack{Thread: "hello\n\xff", Revision: 1}, child.next(t), "what the child heard")
		child.end(t)
	}},
}
