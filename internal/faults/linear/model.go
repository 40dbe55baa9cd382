package linear

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// op is an operation on one thread.
type op string

const (
	opAppend  op = "append"
	opLoad    op = "load"
	opAcquire op = "acquire"
	opRenew   op = "renew"
	opRelease op = "release"
)

// call is what a client asked for.
type call struct {
	op     op
	thread string

	id          [16]byte // of an append
	base, epoch uint64   // of an append; epoch also of the lease to renew or release
	snapshot    bool
	atLeast     uint64 // of a load
	owner       string // of a lease
	runs        bool   // the lease runs; if not, it has run out as soon as it is taken
}

// outcome is how a call ended. Calls that certainly did nothing are in no history.
type outcome string

const (
	done     outcome = "done"
	conflict outcome = "conflict"
	fenced   outcome = "fenced"
	held     outcome = "held"
	unknown  outcome = "unknown" // it may land at any time, or never
)

// answer is what a client was told.
type answer struct {
	how      outcome
	revision uint64 // of an append; where the thread is, of a conflict; the epoch of a lease
	owner    string // who holds the lease
	image    *image
}

// image is what a load returned.
type image struct {
	revision, epoch, snapshotAt uint64
	lastID                      [16]byte
	snapshotID                  [16]byte   // of the commit that the snapshot says it is of
	tail                        [][16]byte // ids
	damaged                     bool       // a record is not the one of its id
}

// state is what a thread is at one moment. It is never changed.
type state struct {
	revision, epoch uint64
	snapshotAt      uint64
	leaseEpoch      uint64 // 0: free
	owner           string
	runs            bool
	last            *link
	digest          uint64 // of all commits
}

// link is a commit in the chain of a thread.
type link struct {
	revision uint64
	id       [16]byte
	lease    bool // made by the store, with an id of its own
	prev     *link
}

// at returns the commit of a revision, or nil.
func (s *state) at(revision uint64) *link {
	l := s.last
	for l != nil && l.revision > revision {
		l = l.prev
	}
	if l == nil || l.revision != revision {
		return nil
	}
	return l
}

// commit returns the state after one more commit.
func (s *state) commit(id [16]byte, lease bool) *state {
	next := *s
	next.revision++
	next.last = &link{revision: next.revision, id: id, lease: lease, prev: s.last}
	for _, b := range id {
		next.digest = (next.digest ^ uint64(b)) * 1099511628211
	}
	next.digest = (next.digest ^ 0x9e) * 1099511628211
	return &next
}

// model is a thread as the contract of engine.Journal and engine.Leaser has it. The
// clock stands still, so a lease either runs for ever or has run out at once.
//
// A call of unknown outcome has no end, so porcupine may place it anywhere after its
// beginning; at a place where it would be refused it changes nothing, which is also
// how one that never landed is explained.
var model = porcupine.Model{
	Partition: byThread,
	Init:      func() any { return &state{} },
	Step: func(before, input, output any) (bool, any) {
		return before.(*state).step(input.(call), output.(answer))
	},
	Equal: func(a, b any) bool { return a.(*state).same(b.(*state)) },
	Hash:  func(s any) uint64 { return s.(*state).digest ^ s.(*state).leaseEpoch },
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%+v -> %+v", input, output)
	},
}

func (s *state) same(o *state) bool {
	return s.revision == o.revision && s.epoch == o.epoch && s.snapshotAt == o.snapshotAt &&
		s.leaseEpoch == o.leaseEpoch && s.owner == o.owner && s.runs == o.runs && s.digest == o.digest
}

func byThread(history []porcupine.Operation) [][]porcupine.Operation {
	threads := map[string][]porcupine.Operation{}
	for _, o := range history {
		name := o.Input.(call).thread
		threads[name] = append(threads[name], o)
	}
	var parts [][]porcupine.Operation
	for _, part := range threads {
		parts = append(parts, part)
	}
	return parts
}

// step reports whether the answer is right at this moment, and what comes after.
func (s *state) step(c call, a answer) (bool, *state) {
	switch c.op {
	case opAppend:
		return s.append(c, a)
	case opLoad:
		return s.load(c, a.image), s
	case opAcquire:
		return s.acquire(c, a)
	case opRenew:
		if s.leaseEpoch != c.epoch || s.owner != c.owner {
			return a.how == fenced || a.how == unknown, s
		}
		next := *s
		next.runs = c.runs
		return a.how == done && a.revision == c.epoch || a.how == unknown, &next
	default:
		if s.epoch != c.epoch {
			return a.how == fenced || a.how == unknown, s
		}
		next := *s
		next.leaseEpoch, next.owner, next.runs = 0, "", false
		return a.how == done || a.how == unknown, &next
	}
}

func (s *state) append(c call, a answer) (bool, *state) {
	right := a.how == done && a.revision == c.base+1 || a.how == unknown
	if l := s.at(c.base + 1); l != nil && !l.lease && l.id == c.id {
		return right, s // a repeat
	}
	if c.base != s.revision || c.epoch != s.epoch {
		return a.how == conflict && c.base != s.revision && a.revision == s.revision ||
			a.how == fenced && c.epoch != s.epoch ||
			a.how == unknown, s
	}
	next := s.commit(c.id, false)
	if c.snapshot {
		next.snapshotAt = next.revision
	}
	return right, next
}

func (s *state) acquire(c call, a answer) (bool, *state) {
	if s.leaseEpoch != 0 && s.runs && s.owner != c.owner {
		return a.how == held && a.owner == s.owner || a.how == unknown, s
	}
	next := s.commit([16]byte{}, true)
	next.epoch, next.leaseEpoch, next.owner, next.runs = next.revision, next.revision, c.owner, c.runs
	return a.how == done && a.revision == next.epoch || a.how == unknown, next
}

// load compares all that an image says.
func (s *state) load(c call, i *image) bool {
	if i.damaged || i.revision < c.atLeast || i.revision != s.revision || i.epoch != s.epoch || i.snapshotAt != s.snapshotAt {
		return false
	}
	if s.last != nil && !s.last.lease && i.lastID != s.last.id {
		return false
	}
	if uint64(len(i.tail)) != s.revision-s.snapshotAt {
		return false
	}
	l := s.last
	for _, id := range slices.Backward(i.tail) {
		if !l.lease && l.id != id || id == [16]byte{} {
			return false
		}
		l = l.prev
	}
	return s.snapshotAt == 0 || l.id == i.snapshotID
}
