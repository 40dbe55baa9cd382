package nats

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ddd26017/fixpoint/store"
)

// Options configures a store. The zero value asks for a cluster of at least three
// servers, and for Monitors or System, or one of AssumeSynced and AllowUnsynced.
type Options struct {
	// Stream is the name of the stream; "" is FIXPOINT. One stream is one store.
	Stream string
	// Prefix is the first token, or tokens, of all subjects; "" is the stream's name in lower
	// case.
	Prefix string
	// Replicas is how many servers have a copy of a new stream, and must have one of an old
	// stream; 0 is 3. With less than 3 the loss of one server stops or loses the store.
	Replicas int
	// Placement says which servers a new stream may be on.
	Placement *jetstream.Placement
	// Domain is the JetStream domain, where there is one.
	Domain string

	// Monitors are the base URLs of the monitoring endpoints of all servers that have the
	// stream, such as http://10.0.0.1:8222. Open asks them whether they sync every write.
	Monitors []string
	// System is a connection to the system account, which serves the same purpose.
	System *client.Conn
	// AssumeSynced says that sync_interval is "always" on every server of the stream,
	// without a check.
	AssumeSynced bool
	// AllowUnsynced goes without: Open takes servers that do not sync or cannot be asked,
	// and Caps does not promise that a loss of power loses nothing.
	AllowUnsynced bool

	// Connect is added to what Open connects with: credentials, TLS, names and handlers.
	Connect []client.Option

	// MaxBytes limits each record, snapshot and effect body; 0 is 8 MiB. What does not fit into
	// one message, which is what max_payload of the server allows, goes in parts, and a commit
	// is at most 1,000 messages. MaxBytes is at most 64 MiB, and at most 300 messages.
	MaxBytes int
	// Patience is how long a call goes on when servers do not answer, if its context does
	// not end before; 0 is 30 seconds. To elect a leader takes 4 to 10.
	Patience time.Duration
	// Now is the clock of leases, claims and effects that wait; nil is time.Now. It must
	// be safe for concurrent use.
	Now func() time.Time
}

const (
	defaultStream   = "FIXPOINT"
	defaultBytes    = 8 << 20
	mostBytes       = 64 << 20
	mostParts       = 300
	defaultPatience = 30 * time.Second

	// attemptTimeout is how long one request waits for its answer. A leader that is
	// alive answers within milliseconds.
	attemptTimeout = 3 * time.Second
	// room is kept free in each message for headers, and for the fields before a record.
	room = 4 << 10
	// maxErrorText is how much is kept of what a delivery failed with.
	maxErrorText = 4 << 10

	// These say how long messages stay that nobody needs later.
	confirmTTL  = time.Second
	deletionTTL = time.Minute
)

// Journal is an open store. It implements [store.Journal], [store.Leaser],
// [store.Historian], [store.Queue] and [store.Notifier], and is safe for concurrent use.
// Open and New make one; it must be closed.
type Journal struct {
	nc       *client.Conn
	owned    bool // the connection is the store's own
	js       jetstream.JetStream
	stream   jetstream.Stream
	name     string
	prefix   string
	now      func() time.Time
	maxBytes int
	part     int // bytes of data in one message
	replicas int
	synced   bool
	patience time.Duration

	ctx     context.Context // ends with Close
	cancel  context.CancelCauseFunc
	closing sync.Mutex
	closed  bool
	calls   sync.WaitGroup

	batches chan struct{} // batches that are under way
	heads   heads
	threads listing
	outbox  *outbox
	janitor *janitor
}

var (
	_ store.Journal   = (*Journal)(nil)
	_ store.Leaser    = (*Journal)(nil)
	_ store.Historian = (*Journal)(nil)
	_ store.Queue     = (*Journal)(nil)
	_ store.Notifier  = (*Journal)(nil)
)

// Open connects to the servers of a URL, or of several that commas separate, and opens the
// store, which is made when it is not there. Errors: ErrNotSynced, ErrStream, and those of
// the client.
func Open(ctx context.Context, url string, o Options) (*Journal, error) {
	options := append([]client.Option{
		client.Name("fixpoint"),
		client.MaxReconnects(-1),
		client.IgnoreAuthErrorAbort(), // credentials may be renewed
		client.ReconnectWait(250 * time.Millisecond),
		client.ReconnectJitter(100*time.Millisecond, 250*time.Millisecond),
		client.PingInterval(10 * time.Second),
		client.MaxPingsOutstanding(2),
		client.ErrorHandler(func(*client.Conn, *client.Subscription, error) {}), // the default one prints
	}, o.Connect...)
	if deadline, ok := ctx.Deadline(); ok {
		options = append(options, client.Timeout(time.Until(deadline)))
	}
	shown, err := withoutSecrets(url)
	if err != nil {
		return nil, err
	}
	nc, err := client.Connect(url, options...)
	if err != nil {
		return nil, fmt.Errorf("nats: connect to %s: %w", shown, err)
	}
	j, err := New(ctx, nc, o)
	if err != nil {
		nc.Close()
		return nil, err
	}
	j.owned = true
	return j, nil
}

// New opens the store over a connection of the caller, who closes it after the store. The
// connection should never give up to reconnect, and must have echo.
func New(ctx context.Context, nc *client.Conn, o Options) (*Journal, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	j := &Journal{
		nc:       nc,
		name:     o.Stream,
		prefix:   o.Prefix,
		now:      o.Now,
		maxBytes: o.MaxBytes,
		part:     int(nc.MaxPayload()) - room,
		replicas: o.Replicas,
		patience: o.Patience,
		batches:  make(chan struct{}, 16), // a stream takes 50, from all processes
	}
	switch {
	case nc.Opts.NoEcho:
		return nil, errors.New("nats: the connection has no echo, so that listeners in this process would hear nothing; leave out NoEcho")
	case j.part < store.MaxNotice:
		return nil, fmt.Errorf("nats: max_payload of the server is %d bytes; set it to at least %d", nc.MaxPayload(), store.MaxNotice+room)
	case (j.maxBytes+j.part-1)/j.part > mostParts:
		return nil, fmt.Errorf("nats: Options.MaxBytes of %d bytes takes more than %d messages of the server's max_payload; lower it, or raise max_payload", j.maxBytes, mostParts)
	}
	j.ctx, j.cancel = context.WithCancelCause(context.Background())
	j.outbox = newOutbox(j)
	ctx, end, err := j.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := j.openStream(ctx, o); err != nil {
		j.cancel(errClosed)
		return nil, err
	}
	j.janitor = newJanitor(j)
	return j, nil
}

// complete checks the options and fills in what is left out.
func (o Options) complete() (Options, error) {
	if o.Stream == "" {
		o.Stream = defaultStream
	}
	if o.Prefix == "" {
		o.Prefix = lower(o.Stream)
	}
	if o.Replicas == 0 {
		o.Replicas = 3
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultBytes
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	switch {
	case !validStream(o.Stream):
		return o, fmt.Errorf("nats: Options.Stream is %q; want letters, digits, - and _", o.Stream)
	case !validPrefix(o.Prefix):
		return o, fmt.Errorf("nats: Options.Prefix is %q; want tokens of letters, digits, - and _, with dots between them", o.Prefix)
	case o.Replicas < 1 || o.Replicas > 5:
		return o, fmt.Errorf("nats: Options.Replicas is %d; want 1 to 5", o.Replicas)
	case o.MaxBytes < 1 || o.MaxBytes > mostBytes:
		return o, fmt.Errorf("nats: Options.MaxBytes is %d; want 1 to %d", o.MaxBytes, mostBytes)
	case o.Patience < 0:
		return o, fmt.Errorf("nats: Options.Patience is %s; want more than 0", o.Patience)
	}
	return o, nil
}

// Caps implements [store.Journal].
func (j *Journal) Caps() store.Caps {
	return store.Caps{Synced: j.synced, Replicas: j.replicas, MultiProcess: true, MaxBytes: j.maxBytes}
}

// Stream returns the name of the stream.
func (j *Journal) Stream() string { return j.name }

// Close ends all calls that are under way, and waits for them. What they had sent may land.
// A second call returns store.ErrClosed.
func (j *Journal) Close() error {
	j.closing.Lock()
	if j.closed {
		j.closing.Unlock()
		return errClosed
	}
	j.closed = true
	j.closing.Unlock()
	j.cancel(errClosed)
	j.calls.Wait()
	j.outbox.wait()
	j.janitor.done.Wait()
	if j.owned {
		j.nc.Close()
	}
	return nil
}

var (
	errClosed = fmt.Errorf("nats: the store was closed: %w", store.ErrClosed)
	// errImpatient ends calls that servers did not answer.
	errImpatient = errors.New("the servers did not answer in time; see Options.Patience")
)

// enter starts a call that may last as long as ctx and the store do.
func (j *Journal) enter(ctx context.Context) (context.Context, context.CancelFunc, error) {
	j.closing.Lock()
	defer j.closing.Unlock()
	switch {
	case j.closed:
		return nil, nil, errClosed
	case j.nc.IsClosed():
		return nil, nil, fmt.Errorf("nats: the connection was closed: %w", store.ErrClosed)
	case ctx.Err() != nil:
		return nil, nil, fmt.Errorf("nats: not done: %w", context.Cause(ctx))
	}
	j.calls.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(j.ctx, func() { cancel(errClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
		j.calls.Done()
	}, nil
}

// begin starts a call that lasts no longer than patience does.
func (j *Journal) begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	ctx, leave, err := j.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, j.patience, errImpatient)
	return ctx, func() {
		cancel()
		leave()
	}, nil
}

// attempt bounds one request. It ends, too, when the connection was lost and made again,
// because then the answer does not come any more.
func (j *Journal) attempt(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	before := j.nc.Stats().Reconnects
	const every = 50 * time.Millisecond // most requests do not take as long
	watch := time.AfterFunc(every, func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for j.nc.Stats().Reconnects == before {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
		cancel()
	})
	return ctx, func() {
		watch.Stop()
		cancel()
	}
}

// ended makes the error of a call whose context has ended. What was sent may have landed.
func ended(ctx context.Context, sent bool, last error) error {
	cause := context.Cause(ctx)
	err := fmt.Errorf("nats: not done: %w", cause)
	if errors.Is(cause, store.ErrClosed) {
		err = cause
	}
	if last != nil && !errors.Is(last, context.Canceled) && !errors.Is(last, context.DeadlineExceeded) {
		err = fmt.Errorf("%w (the last answer: %v)", err, last)
	}
	if sent {
		err = fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
	}
	return err
}

// newID makes the id of a commit that the store itself adds, or of a call.
func newID() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}
