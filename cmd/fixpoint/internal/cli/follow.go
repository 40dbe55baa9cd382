package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/stores"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/phase"
)

// submission gives an activation to workers, and shows what becomes of it.
type submission struct {
	submitFlags
	store   *kept.Store
	ear     *ear
	client  *worker.Client
	stdio   IO
	printer *terminal.Printer
	view    *terminal.View
	lines   *lines // nil for people
}

// ear is a journal that tells when somebody listens.
type ear struct {
	stores.Journal
	once      sync.Once
	listening chan struct{}
}

// Listen implements store.Notifier.
func (e *ear) Listen(ctx context.Context, topic string) (<-chan []byte, error) {
	c, err := e.Journal.Listen(ctx, topic)
	if err == nil {
		e.once.Do(func() { close(e.listening) })
	}
	return c, err
}

func newSubmission(f submitFlags, store *kept.Store, stdio IO) (*submission, error) {
	s := &submission{submitFlags: f, store: store, stdio: stdio, ear: &ear{Journal: store.Journal, listening: make(chan struct{})}}
	var err error
	s.client, err = worker.NewClient(worker.ClientConfig{Journal: s.ear, Vault: store.Vault, Now: stdio.Now})
	if err != nil {
		return nil, err
	}
	s.printer = terminal.NewPrinter(screen(stdio, stdio.Out))
	s.view = terminal.NewView(s.printer, showFlags{quiet: f.quiet, verbose: f.verbose}.level())
	if f.jsonl {
		s.lines = &lines{to: stdio.Out}
	}
	return s, nil
}

// run submits the activation, if there is one, and does what the flags ask for then.
func (s *submission) run(ctx context.Context, thread string, a *worker.Activation) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	ends := make(chan string, 64)
	watched := make(chan error, 1)
	if s.follow {
		go func() { watched <- s.watch(watching, thread, ends) }()
		select { // so that nothing is missed
		case <-s.ear.listening:
		case err := <-watched:
			return s.broken(err)
		case <-ctx.Done():
			return exitError(ExitCancelled)
		}
	}
	if a == nil {
		err := <-watched
		if ctx.Err() != nil {
			return s.failure()
		}
		return s.broken(err)
	}
	r, err := submitted(ctx, s.client, *a)
	if err != nil {
		return err
	}
	s.receipt(r)
	if !s.follow && !s.wait {
		return s.failure()
	}
	o, err := s.client.Await(ctx, r)
	if ctx.Err() != nil {
		complain(s.stdio.Err, fmt.Errorf("activation %d of thread %s stays submitted", r.Seq, r.Thread))
		return exitError(ExitCancelled)
	}
	if err != nil {
		return fmt.Errorf("fixpoint: %w", err)
	}
	if s.follow && o.Fate == worker.Applied && o.Run != "" {
		s.settle(o.Run, ends, watched)
	}
	stop()
	return s.told(ctx, r, o)
}

// lastEvents is how long events may take that come after the outcome.
const lastEvents = 2 * time.Second

// settle waits for the event that a run ended or waits, which may come after its outcome.
func (s *submission) settle(run string, ends <-chan string, watched <-chan error) {
	timer := time.NewTimer(lastEvents)
	defer timer.Stop()
	for {
		select {
		case ended := <-ends:
			if ended == run {
				return
			}
		case err := <-watched:
			if err != nil {
				complain(s.stdio.Err, err)
			}
			return
		case <-timer.C:
			return
		}
	}
}

// watch shows the events of a thread, and tells which runs ended or wait.
func (s *submission) watch(ctx context.Context, thread string, ends chan<- string) error {
	for e, err := range s.client.Watch(ctx, thread) {
		if err != nil {
			return err
		}
		if e.Missed > 0 {
			s.say("missed", fmt.Sprintf("%d events", e.Missed), map[string]any{"type": "missed", "events": e.Missed})
		}
		if s.lines != nil {
			s.lines.Observe(e.Event)
		} else {
			s.view.Observe(e.Event)
		}
		switch e.Event.(type) {
		case engine.RunFinished, engine.RunSuspended:
			if h := e.Head(); h.Parent == "" {
				select {
				case ends <- h.Run:
				default: // nobody waits for that many
				}
			}
		}
	}
	return nil
}

func (s *submission) broken(err error) error {
	switch {
	case err == nil:
		return s.failure()
	case errors.Is(err, worker.ErrNoNotices):
		return usageError{fmt.Errorf("fixpoint: %w", err)}
	default:
		return fmt.Errorf("fixpoint: %w", err)
	}
}

// failure is what went wrong with what was written.
func (s *submission) failure() error {
	if s.lines != nil {
		return s.lines.close()
	}
	return s.printer.Err()
}

// say writes a line for people, or for programs.
func (s *submission) say(label, text string, line map[string]any) {
	if s.lines == nil {
		s.printer.Line(label, text)
		return
	}
	raw, err := json.Marshal(line)
	if err != nil {
		return // it is made of texts and numbers
	}
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	if s.lines.err == nil {
		if _, err := s.lines.to.Write(append(raw, '\n')); err != nil {
			s.lines.err = unwritten(err)
		}
	}
}

// receipt tells that an activation was submitted.
func (s *submission) receipt(r worker.Receipt) {
	text := fmt.Sprintf("activation %d of thread %s", r.Seq, r.Thread)
	if r.Repeated {
		text = "already: " + text + "; nothing was added"
	}
	if s.lines != nil || !s.quiet {
		s.say("submitted", text, map[string]any{"type": "submitted", "thread": r.Thread, "activation": r.Seq, "run": r.Run, "repeated": r.Repeated})
	}
}

// told tells the outcome of an activation, and is its exit code.
func (s *submission) told(ctx context.Context, r worker.Receipt, o worker.Outcome) error {
	text := string(o.Fate)
	if o.Run != "" && o.Status != "" {
		text = fmt.Sprintf("run %s is %s", o.Run, o.Status)
	}
	for _, more := range []string{string(o.Reason), o.Detail, o.Error} {
		if more != "" {
			text += ": " + more
		}
	}
	s.say("outcome", text, map[string]any{"type": "outcome", "thread": r.Thread, "activation": o.Seq, "kind": o.Kind, "fate": o.Fate,
		"run": o.Run, "status": o.Status, "reason": o.Reason, "detail": o.Detail, "error": o.Error})
	if o.Status == phase.Waiting && s.lines == nil {
		t, err := s.store.Thread(ctx, r.Thread)
		if err != nil {
			return storeFault(err)
		}
		var open []terminal.Question
		for _, q := range t.Open {
			open = append(open, question(s.store.Name, q))
		}
		s.printer.Waiting(open)
	}
	if err := s.failure(); err != nil {
		return err
	}
	switch {
	case o.Fate == worker.Dropped, o.Kind != worker.KindCancel && o.Reason == phase.ReasonCancelled:
		return exitError(ExitCancelled)
	case o.Fate == worker.Refused:
		return exitError(ExitUsage)
	case o.Fate == worker.Dead, o.Reason == phase.ReasonError:
		return exitError(ExitError)
	case o.Status == phase.Waiting:
		return exitError(ExitWaiting)
	}
	return nil
}
