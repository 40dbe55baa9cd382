// Package writer is the child process of the checks of package faults: it writes to a
// bolt store as hard as it can and tells each acknowledgement on a pipe, until its work
// is done, the store fails, or the process is ended.
package writer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/internal/faults/child"
	"github.com/ddd26017/fixpoint/store/bolt"
	"github.com/ddd26017/fixpoint/store/storetest"
)

// Order is what a writer is to do.
type Order struct {
	Path   string
	NoSync bool
	Work   storetest.Work
	// Strike happens to the process when it has acknowledged After commits; 0 is before
	// the first one.
	Strike Strike
	After  int
}

// Part is the child process.
var Part = child.Part{Name: "writer", Run: write}

// accepted is what a writer reports whose store took a write after one had failed.
const accepted = "writer: the store took a write after one had failed"

func write(ctx context.Context, args []string) error {
	var o Order
	if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
		return err
	}
	j, err := bolt.Open(o.Path, bolt.Options{NoSync: o.NoSync})
	if err != nil {
		return err
	}
	out := &acks{out: os.Stdout, order: o, left: o.After}
	if err := out.check(); err != nil {
		return err
	}
	err = storetest.Serve(ctx, j, strings.NewReader(o.Work.Job()), out)
	if err != nil {
		_, again := j.Append(ctx, engine.JournalCommit{ID: [16]byte{1}, Thread: "afterwards"})
		if !errors.Is(again, engine.ErrJournalClosed) {
			err = errors.Join(errors.New(accepted), again, err)
		}
	}
	return errors.Join(err, j.Close())
}

// acks passes acknowledgements on and counts them. Serve writes one at a time.
type acks struct {
	out    io.Writer
	order  Order
	left   int
	struck bool
}

// Write implements io.Writer.
func (a *acks) Write(p []byte) (int, error) {
	if a.struck && a.order.Strike == DieAtAnswer {
		return 0, die()
	}
	n, err := a.out.Write(p)
	a.left -= bytes.Count(p[:n], []byte("\n"))
	return n, errors.Join(err, a.check())
}

func (a *acks) check() error {
	if a.struck || a.left > 0 {
		return nil
	}
	a.struck = true
	return a.order.Strike.happen(a.order.Path)
}

// die ends this process as a kill from outside does.
func die() error {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	return errors.Join(err, errors.New("writer: the process outlived its end"))
}

// Run is a writer that was started.
type Run struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	read   chan struct{} // closed when the pipe has ended

	mu    sync.Mutex
	out   bytes.Buffer
	lines int
	more  *sync.Cond
	ended bool
}

// Start starts a writer. Wait must be called.
func Start(ctx context.Context, o Order) (*Run, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	cmd, err := Part.Command(ctx, string(text))
	if err != nil {
		return nil, err
	}
	r := &Run{cmd: cmd, read: make(chan struct{})}
	r.more = sync.NewCond(&r.mu)
	cmd.Stderr = &r.stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("writer: %w", err)
	}
	go func() {
		defer close(r.read)
		_, _ = io.Copy(r, pipe)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended = true
		r.more.Broadcast()
	}()
	return r, nil
}

// Write takes what the child tells; it is called by Run itself.
func (r *Run) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out.Write(p)
	r.lines += bytes.Count(p, []byte("\n"))
	r.more.Broadcast()
	return len(p), nil
}

// Await waits until the child has acknowledged so many commits, and reports false when
// it ended before.
func (r *Run) Await(acks int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.lines < acks && !r.ended {
		r.more.Wait()
	}
	return r.lines >= acks
}

// Stop stops the child; see child.Stop.
func (r *Run) Stop() error { return child.Stop(r.cmd.Process) }

// Kill ends the child without a chance to do anything more.
func (r *Run) Kill() error { return r.cmd.Process.Kill() }

// Result is what became of a writer.
type Result struct {
	Acks   []storetest.Ack // all that was told, up to the last moment
	Failed error           // how the process ended; nil: its work was done
	Said   string          // on standard error
}

// Accepted reports whether the store took a write after one had failed.
func (r Result) Accepted() bool { return strings.Contains(r.Said, accepted) }

// Wait waits for the end of the child and of its pipe. The error is one of the check
// itself.
func (r *Run) Wait() (Result, error) {
	<-r.read
	failed := r.cmd.Wait()
	acks, err := storetest.ReadAcks(&r.out)
	return Result{Acks: acks, Failed: failed, Said: r.stderr.String()}, err
}

// Do starts a writer and waits for its end.
func Do(ctx context.Context, o Order) (Result, error) {
	r, err := Start(ctx, o)
	if err != nil {
		return Result{}, err
	}
	return r.Wait()
}

// Check opens the store that writers left behind, verifies its file, and compares it
// with all that they told.
func Check(ctx context.Context, path string, acks []storetest.Ack) error {
	if _, err := bolt.Verify(path, bolt.Options{}); err != nil {
		return err
	}
	j, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return err
	}
	return errors.Join(storetest.Check(ctx, j, acks), j.Close())
}

// Lost counts the acknowledged commits that a store does not have, all of them when
// it does not open.
func Lost(ctx context.Context, path string, acks []storetest.Ack) int {
	j, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return len(acks)
	}
	defer j.Close()
	lost := 0
	ends := map[string]uint64{}
	for _, a := range acks {
		end, known := ends[a.Thread]
		if !known {
			image, err := j.Load(ctx, a.Thread, 0)
			if err == nil {
				end = image.Revision
			}
			ends[a.Thread] = end
		}
		if a.Revision > end {
			lost++
		}
	}
	return lost
}
