package worker

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store"
)

const (
	// Window is how many of a thread's latest activations are recognised when they are
	// submitted again, by their keys.
	Window = 256
	// MaxPending is how many activations of a thread can wait; more are refused.
	MaxPending = 256

	keptOutcomes = 64 // of a thread, the latest ones
	keptDead     = 64 // activations given up, of a thread; older ones are forgotten
	longTail     = 64 // records after which a new snapshot is written
)

// ErrFull is returned when MaxPending activations of a thread wait already.
var ErrFull = errors.New("worker: too many activations of the thread wait; try again later")

// recordVersion is the first byte of every record and snapshot. A newer one is refused.
const recordVersion = 1

// entry is one activation in an inbox. The number, attempts, and what follows them are set
// in snapshots only: in a record, the number is its revision.
type entry struct {
	ID        string              `json:"id"`
	Time      time.Time           `json:"time"`
	Kind      Kind                `json:"kind"`
	Agent     string              `json:"agent,omitempty"`
	Messages  []inference.Message `json:"messages,omitempty"`
	Mode      string              `json:"mode,omitempty"`
	Adapter   string              `json:"adapter,omitempty"`
	Decisions []decision          `json:"decisions,omitempty"`
	Reason    string              `json:"reason,omitempty"`
	NotBefore time.Time           `json:"not_before,omitzero"`
	Priority  Priority            `json:"priority,omitempty"`
	Tenant    string              `json:"tenant,omitempty"`
	Key       string              `json:"key,omitempty"`

	Seq      uint64    `json:"seq,omitempty"`
	Attempts int       `json:"attempts,omitempty"`
	RetryAt  time.Time `json:"retry_at,omitzero"`
	Error    string    `json:"error,omitempty"` // of the last attempt
}

// decision is an engine.Decision as it is written down.
type decision struct {
	ID     string       `json:"id,omitempty"`
	Call   string       `json:"call,omitempty"`
	Answer phase.Answer `json:"answer"`
}

func (e entry) lane() Lane { return Lane{e.Priority.orNormal(), e.Tenant} }

func (e entry) receipt(thread string) Receipt { return Receipt{Thread: thread, Seq: e.Seq, Run: e.ID} }

// wakeup is the effect that makes a worker look at the inbox.
func (e entry) wakeup() store.Effect {
	return store.Effect{Lane: e.lane().String(), NotBefore: e.NotBefore}
}

func newEntry(a Activation, id [16]byte, now time.Time) entry {
	if a.Kind == "" {
		a.Kind = KindInput
	}
	e := entry{
		ID: hex.EncodeToString(id[:]), Time: now.UTC().Round(0), Kind: a.Kind, Agent: a.Agent, Messages: a.Messages, Mode: a.Mode,
		Adapter: a.Adapter, Reason: a.Reason, Priority: a.Priority, Tenant: a.Tenant, Key: a.Key,
	}
	if !a.NotBefore.IsZero() {
		e.NotBefore = a.NotBefore.UTC().Round(0)
	}
	for _, d := range a.Decisions {
		e.Decisions = append(e.Decisions, decision{d.ID, d.Call, d.Answer})
	}
	return e
}

// activation is the entry for others to see.
func (e entry) activation(thread string) Activation {
	a := Activation{
		Thread: thread, Kind: e.Kind, Agent: e.Agent, Messages: e.Messages, Mode: e.Mode, Adapter: e.Adapter,
		Reason: e.Reason, NotBefore: e.NotBefore, Priority: e.Priority.orNormal(), Tenant: e.Tenant, Key: e.Key,
	}
	for _, d := range e.Decisions {
		a.Decisions = append(a.Decisions, engine.Decision{ID: d.ID, Call: d.Call, Answer: d.Answer})
	}
	return a
}

// Fate is what became of an activation.
type Fate string

// The fates.
const (
	Pending Fate = "pending" // it waits for its turn or is at work
	Applied Fate = "applied" // it took effect
	Dropped Fate = "dropped" // a cancel came before its turn
	Refused Fate = "refused" // it made no sense: a late decision, a bad message
	Dead    Fate = "dead"    // it was given up after Config.MaxAttempts
)

// Outcome tells what became of an activation.
type Outcome struct {
	Seq  uint64    `json:"seq"`
	Kind Kind      `json:"kind"`
	Fate Fate      `json:"fate"`
	Time time.Time `json:"time,omitzero"`
	// Run and those below tell where the run was that it started or went on with, when
	// the worker was through.
	Run    string          `json:"run,omitempty"`
	Status phase.RunStatus `json:"status,omitempty"`
	Reason phase.Reason    `json:"reason,omitempty"`
	Detail string          `json:"detail,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// failure is an attempt that came to nothing.
type failure struct {
	Seq     uint64    `json:"seq"`
	Error   string    `json:"error"`
	RetryAt time.Time `json:"retry_at,omitzero"`
	Dead    bool      `json:"dead,omitempty"`
}

// record is one commit of an inbox.
type record struct {
	Submit *entry    `json:"submit,omitempty"`
	Done   []Outcome `json:"done,omitempty"`
	Failed *failure  `json:"failed,omitempty"`
	Drop   []uint64  `json:"drop,omitempty"` // dead ones that were submitted anew
}

// seen is an activation that is recognised when it comes again.
type seen struct {
	Key string `json:"key,omitempty"`
	ID  string `json:"id"`
	Seq uint64 `json:"seq"`
}

// box is what an inbox amounts to: the fold of its records, and its snapshot.
type box struct {
	Inbox   string    `json:"inbox"` // that this inbox has and none before or after it
	Pending []entry   `json:"pending,omitempty"`
	Dead    []entry   `json:"dead,omitempty"`
	Seen    []seen    `json:"seen,omitempty"`
	Done    []Outcome `json:"done,omitempty"`

	revision uint64
	tail     int // records since the snapshot
}

// open reads what the journal has of an inbox.
func open(image store.Image) (*box, error) {
	b := &box{}
	if image.Snapshot != nil {
		if err := decode(image.Snapshot, b); err != nil {
			return nil, fmt.Errorf("snapshot at revision %d: %w", image.SnapshotAt, err)
		}
	}
	for _, r := range image.Tail {
		var rec record
		if err := decode(r.Record, &rec); err != nil {
			return nil, fmt.Errorf("record %d: %w", r.Revision, err)
		}
		if b.Inbox == "" {
			b.Inbox = hex.EncodeToString(r.ID[:])
		}
		b.add(rec, r.Revision)
	}
	b.revision, b.tail = image.Revision, len(image.Tail)
	return b, nil
}

// add applies one record.
func (b *box) add(r record, revision uint64) {
	if f := r.Failed; f != nil {
		if i := find(b.Pending, f.Seq); i >= 0 {
			e := &b.Pending[i]
			e.Attempts++
			e.Error, e.RetryAt = f.Error, f.RetryAt
			if f.Dead {
				b.Dead = last(append(b.Dead, *e), keptDead)
				b.Pending = slices.Delete(b.Pending, i, i+1)
			}
		}
	}
	for _, o := range r.Done {
		i, j := find(b.Pending, o.Seq), find(b.Dead, o.Seq)
		if i >= 0 {
			b.Pending = slices.Delete(b.Pending, i, i+1)
		}
		if j >= 0 {
			b.Dead = slices.Delete(b.Dead, j, j+1)
		}
		if i >= 0 || j >= 0 {
			b.Done = last(append(b.Done, o), keptOutcomes)
		}
	}
	for _, seq := range r.Drop {
		if i := find(b.Dead, seq); i >= 0 {
			b.Dead = slices.Delete(b.Dead, i, i+1)
		}
	}
	if r.Submit != nil {
		e := *r.Submit
		e.Seq = revision
		b.Pending = append(b.Pending, e)
		b.Seen = last(append(b.Seen, seen{e.Key, e.ID, e.Seq}), Window)
	}
	b.revision = revision
}

func find(list []entry, seq uint64) int {
	return slices.IndexFunc(list, func(e entry) bool { return e.Seq == seq })
}

func last[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// outcome returns what became of an activation, as far as the inbox still knows.
func (b *box) outcome(seq uint64) (Outcome, bool) {
	for _, o := range b.Done {
		if o.Seq == seq {
			return o, true
		}
	}
	if i := find(b.Dead, seq); i >= 0 {
		e := b.Dead[i]
		return Outcome{Seq: seq, Kind: e.Kind, Fate: Dead, Run: e.ID, Error: e.Error}, true
	}
	if i := find(b.Pending, seq); i >= 0 {
		e := b.Pending[i]
		return Outcome{Seq: seq, Kind: e.Kind, Fate: Pending, Error: e.Error}, true
	}
	return Outcome{}, false
}

func encode(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	return append([]byte{recordVersion}, text...), err
}

// decode reads what encode wrote, strictly.
func decode(raw []byte, v any) error {
	if len(raw) == 0 || raw[0] != recordVersion {
		return fmt.Errorf("%w: this program reads format %d of inboxes", engine.ErrRecord, recordVersion)
	}
	d := json.NewDecoder(bytes.NewReader(raw[1:]))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil && len(bytes.TrimSpace(raw[1+d.InputOffset():])) > 0 {
		err = errors.New("there is more behind it")
	}
	if err != nil {
		return fmt.Errorf("%w: %w", engine.ErrRecord, err)
	}
	return nil
}
