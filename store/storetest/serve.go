package storetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// Serve is the child's side of the kit. It reads jobs as text from in, one a line, does
// one after the other on the store, and writes each acknowledgement to out when it has
// come, one a line. It returns when in ends. A Work's job is one of them; the others are
// the kit's own.
func Serve(ctx context.Context, j store.Journal, in io.Reader, out io.Writer) error {
	s := &server{journal: j, out: out}
	lines := bufio.NewReader(in)
	for served := 0; ; served++ {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) && served > 0 && line == "" {
			return nil
		}
		if err != nil {
			return fmt.Errorf("storetest: read the job: %w", err)
		}
		if err := s.serve(ctx, line); err != nil {
			return err
		}
	}
}

// server does the jobs of one Serve.
type server struct {
	journal store.Journal

	mu     sync.Mutex
	out    io.Writer
	broken error // of out
}

func (s *server) ack(a Ack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := fmt.Fprintf(s.out, "%q %d %x\n", a.Thread, a.Revision, a.ID); err != nil {
		s.broken = err
	}
}

func (s *server) serve(ctx context.Context, line string) error {
	var err error
	verb, rest, _ := strings.Cut(line, " ")
	switch {
	case line[0] == '"':
		err = s.work(ctx, line)
	case verb == "load":
		err = s.load(ctx, rest)
	case verb == "acquire":
		err = s.acquire(ctx, rest)
	case verb == "drain":
		err = s.drain(ctx, rest)
	case verb == "notify":
		err = s.notify(ctx, rest)
	case verb == "listen":
		err = s.listen(ctx, rest)
	default:
		err = errors.New("no such job")
	}
	if err != nil {
		return fmt.Errorf("storetest: the job %q: %w", line, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

func (s *server) work(ctx context.Context, line string) error {
	var w Work
	var threads string
	if _, err := fmt.Sscanf(line, "%q %d %d %d %d %d", &threads, &w.Writers, &w.Commits, &w.Seed, &w.MaxSize, &w.Every); err != nil {
		return err
	}
	w.Threads = strings.Split(threads, "\n")
	return w.Run(ctx, s.journal, s.ack)
}

// Job returns the text that Serve reads. Thread ids must not hold line breaks.
func (w Work) Job() string {
	return fmt.Sprintf("%q %d %d %d %d %d\n", strings.Join(w.Threads, "\n"), w.Writers, w.Commits, w.Seed, w.MaxSize, w.Every)
}

// loadJob loads a thread at a revision at least, and acknowledges what it is at.
func loadJob(thread string, atLeast uint64) string {
	return fmt.Sprintf("load %q %d\n", thread, atLeast)
}

func (s *server) load(ctx context.Context, args string) error {
	var thread string
	var atLeast uint64
	if _, err := fmt.Sscanf(args, "%q %d", &thread, &atLeast); err != nil {
		return err
	}
	image, err := s.journal.Load(ctx, thread, atLeast)
	if err != nil {
		return err
	}
	s.ack(Ack{thread, image.Revision, image.LastID})
	return nil
}

// acquireJob takes a lease for an hour and acknowledges its epoch, 0 if another owner
// has it.
func acquireJob(thread, owner string) string { return fmt.Sprintf("acquire %q %q\n", thread, owner) }

func (s *server) acquire(ctx context.Context, args string) error {
	var thread, owner string
	if _, err := fmt.Sscanf(args, "%q %q", &thread, &owner); err != nil {
		return err
	}
	leaser, ok := s.journal.(store.Leaser)
	if !ok {
		return errors.ErrUnsupported
	}
	lease, err := leaser.Acquire(ctx, thread, owner, time.Hour)
	if err != nil && !errors.Is(err, store.ErrLeaseHeld) {
		return err
	}
	s.ack(Ack{Thread: thread, Revision: lease.Epoch})
	return nil
}

// drainJob claims and settles effects of a lane until none is due, and acknowledges
// each one's reference and attempts.
func drainJob(lane string) string { return fmt.Sprintf("drain %q\n", lane) }

func (s *server) drain(ctx context.Context, args string) error {
	var lane string
	if _, err := fmt.Sscanf(args, "%q", &lane); err != nil {
		return err
	}
	outbox, ok := s.journal.(store.Outbox)
	if !ok {
		return errors.ErrUnsupported
	}
	for {
		claims, err := outbox.Claim(ctx, lane, "child", 3, time.Hour)
		if err != nil || len(claims) == 0 {
			return err
		}
		for _, c := range claims {
			if err := outbox.Settle(ctx, c, store.Settlement{}); err != nil {
				return err
			}
			s.ack(Ack{Thread: c.Ref.String(), Revision: uint64(c.Attempts)})
		}
	}
}

// notifyJob sends the numbers below n to a topic and acknowledges when all are sent.
func notifyJob(topic string, n int) string { return fmt.Sprintf("notify %q %d\n", topic, n) }

func (s *server) notify(ctx context.Context, args string) error {
	var topic string
	var n int
	if _, err := fmt.Sscanf(args, "%q %d", &topic, &n); err != nil {
		return err
	}
	notifier, ok := s.journal.(store.Notifier)
	if !ok {
		return errors.ErrUnsupported
	}
	for i := range n {
		if err := notifier.Notify(ctx, topic, fmt.Append(nil, i)); err != nil {
			return err
		}
	}
	s.ack(Ack{Thread: topic, Revision: uint64(n)})
	return nil
}

// listenJob listens to a topic, acknowledges that it does, and then the first notice,
// whose data is the acknowledgement's thread.
func listenJob(topic string) string { return fmt.Sprintf("listen %q\n", topic) }

func (s *server) listen(ctx context.Context, args string) error {
	var topic string
	if _, err := fmt.Sscanf(args, "%q", &topic); err != nil {
		return err
	}
	notifier, ok := s.journal.(store.Notifier)
	if !ok {
		return errors.ErrUnsupported
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	heard, err := notifier.Listen(ctx, topic)
	if err != nil {
		return err
	}
	s.ack(Ack{Thread: topic})
	data, open := <-heard
	if !open {
		return errors.New("the channel was closed")
	}
	s.ack(Ack{Thread: string(data), Revision: 1})
	return nil
}

// ReadAcks reads what Serve wrote, up to the end or to a last line that was cut off.
func ReadAcks(out io.Reader) (acks []Ack, err error) {
	lines := bufio.NewReader(out)
	for {
		a, err := readAck(lines)
		if errors.Is(err, io.EOF) {
			return acks, nil
		}
		if err != nil {
			return acks, err
		}
		acks = append(acks, a)
	}
}

func readAck(lines *bufio.Reader) (a Ack, err error) {
	line, err := lines.ReadString('\n')
	if err != nil {
		return a, fmt.Errorf("storetest: read acknowledgements: %w", err)
	}
	var id []byte
	if _, err := fmt.Sscanf(line, "%q %d %x", &a.Thread, &a.Revision, &id); err != nil || len(id) != len(a.ID) {
		return a, fmt.Errorf("storetest: %q is no acknowledgement", line)
	}
	copy(a.ID[:], id)
	return a, nil
}
