package sim

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/engine"
)

// ledger is the plain model beside the engines: what was sent, what landed in the
// store, what was acknowledged, and what tools and receivers of effects saw.
// Whatever contradicts it is a violation.
type ledger struct {
	mu         sync.Mutex
	violations []string
	stats      Stats

	sent    map[[16]byte]*sentCommit
	threads map[string]*history

	bodies    map[string]int      // how often a call's body began, by thread/call
	results   map[string]int      // results that landed, by thread/call
	answers   map[string][]answer // about a call, as they landed, by thread/call
	decided   map[string]string
	decisions map[string]int
	landed    map[string]bool   // tokens of effects
	owed      map[string]string // durable effects that landed: their outbox entry by token
	entry     map[engine.EffectRef]string
	delivered map[string]map[string]int // by token and id
}

// history is the chain of one thread as it landed.
type history struct {
	commits []landing
	epoch   uint64
	holder  string    // who took the lease of the epoch
	owner   string    // the same, until it was given up
	until   time.Time // it runs
	pruned  uint64    // revisions before it may be gone
}

// landing is a commit that landed, or a lease that was taken.
type landing struct {
	commit engine.JournalCommit
	lease  bool
	epoch  uint64
}

// answer is a decision about a call that landed as part of a revision.
type answer struct {
	revision uint64
	yes      bool
}

type sentCommit struct {
	process string
	sum     uint64
	acked   uint64
	landed  uint64
}

func newLedger() *ledger {
	return &ledger{
		sent: map[[16]byte]*sentCommit{}, threads: map[string]*history{},
		bodies: map[string]int{}, results: map[string]int{}, answers: map[string][]answer{},
		decided: map[string]string{}, decisions: map[string]int{},
		landed: map[string]bool{}, owed: map[string]string{}, entry: map[engine.EffectRef]string{},
		delivered: map[string]map[string]int{},
	}
}

// mostViolations is how many are kept of a world.
const mostViolations = 20

// wrong notes a violation. The lock is held.
func (l *ledger) wrong(format string, args ...any) {
	if len(l.violations) < mostViolations {
		l.violations = append(l.violations, fmt.Sprintf(format, args...))
	}
}

// violated notes a violation.
func (l *ledger) violated(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong(format, args...)
}

// add changes the counts.
func (l *ledger) add(change func(*Stats)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.stats)
}

func (l *ledger) thread(id string) *history {
	if l.threads[id] == nil {
		l.threads[id] = &history{}
	}
	return l.threads[id]
}

var sumSeed = maphash.MakeSeed()

// sum is a fingerprint of a commit's content.
func sum(c engine.JournalCommit) uint64 {
	var h maphash.Hash
	h.SetSeed(sumSeed)
	fmt.Fprintf(&h, "%q %d %d %d %q\n", c.Thread, c.Base, c.Epoch, len(c.Effects), c.Settles)
	_, _ = h.Write(c.Record)
	_, _ = h.Write(c.Snapshot)
	for _, e := range c.Effects {
		fmt.Fprintf(&h, "%q %d ", e.Lane, e.NotBefore.UnixNano())
		_, _ = h.Write(e.Body)
	}
	return h.Sum64()
}

// sends notes what a process asks the store to append.
func (l *ledger) sends(process string, c engine.JournalCommit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sent[c.ID]
	if s == nil {
		l.sent[c.ID] = &sentCommit{process: process, sum: sum(c)}
		return
	}
	l.stats.Repeats++
	if s.sum != sum(c) || s.process != process {
		l.wrong("%s repeats a commit of %s with another content", process, c.Thread)
	}
}

// acked checks what a process is told: the commit must be there, where it says.
func (l *ledger) acked(process string, c engine.JournalCommit, revision uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Acked++
	h := l.thread(c.Thread)
	switch {
	case revision != c.Base+1:
		l.wrong("%s: an append to %s at %d is acknowledged as revision %d", process, c.Thread, c.Base, revision)
	case revision > uint64(len(h.commits)):
		l.wrong("%s: the acknowledged commit %d of %s is not in the journal", process, revision, c.Thread)
	case h.commits[revision-1].commit.ID != c.ID:
		l.wrong("%s: commit %d of %s is acknowledged, and the journal has another one there", process, revision, c.Thread)
	}
	l.sent[c.ID].acked = revision
}

// refused checks a definite no: the commit must not be there.
func (l *ledger) refused(process string, c engine.JournalCommit, err error) {
	if !errors.Is(err, engine.ErrJournalConflict) && !errors.Is(err, engine.ErrFenced) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Refused++
	if errors.Is(err, engine.ErrFenced) {
		l.stats.Fenced++
	}
	if s := l.sent[c.ID]; s.landed >= max(l.thread(c.Thread).pruned, 1) {
		l.wrong("%s: commit %d of %s is refused, and it landed: %v", process, s.landed, c.Thread, err)
	}
}

// lands notes a commit that the store took.
func (l *ledger) lands(c engine.JournalCommit, revision uint64) {
	h := l.thread(c.Thread)
	if revision <= uint64(len(h.commits)) {
		if h.commits[revision-1].commit.ID != c.ID {
			l.wrong("the store took two commits as revision %d of %s", revision, c.Thread)
		}
		return // a repeat
	}
	l.stats.Landed++
	s := l.sent[c.ID]
	switch {
	case revision != uint64(len(h.commits))+1 || c.Base != revision-1:
		l.wrong("a commit on revision %d of %s became revision %d after %d commits", c.Base, c.Thread, revision, len(h.commits))
	case s == nil:
		l.wrong("commit %d of %s was never sent", revision, c.Thread)
	case s.landed != 0:
		l.wrong("commit %d of %s is there again as %d", s.landed, c.Thread, revision)
	case s.sum != sum(c):
		l.wrong("commit %d of %s is not what was sent", revision, c.Thread)
	case c.Epoch != h.epoch:
		l.wrong("commit %d of %s landed under epoch %d, and the lease is of epoch %d", revision, c.Thread, c.Epoch, h.epoch)
	case h.epoch != 0 && s.process != h.holder:
		l.wrong("commit %d of %s is by %s, in the epoch of %s", revision, c.Thread, s.process, h.holder)
	}
	if s != nil {
		s.landed = revision
	}
	c.Record, c.Snapshot = bytes.Clone(c.Record), bytes.Clone(c.Snapshot)
	h.commits = append(h.commits, landing{commit: c, epoch: c.Epoch})
	l.content(c, revision)
	for _, ref := range c.Settles {
		l.settled(ref)
	}
}

// leases notes that a lease was taken, which is a commit.
func (l *ledger) leases(thread, owner string, epoch uint64, until time.Time) {
	h := l.thread(thread)
	if epoch != uint64(len(h.commits))+1 {
		l.wrong("the lease of %s became revision %d after %d commits", thread, epoch, len(h.commits))
	}
	if h.owner != "" && h.owner != owner {
		l.stats.Takeovers++
		if time.Now().Before(h.until) {
			l.wrong("%s took the lease of %s, and %s has it until %s", owner, thread, h.owner, h.until)
		}
	}
	h.commits = append(h.commits, landing{lease: true, epoch: epoch})
	h.epoch, h.holder, h.owner, h.until = epoch, owner, owner, until
	l.stats.Leases++
}

// content reads the tokens in a commit.
func (l *ledger) content(c engine.JournalCommit, revision uint64) {
	for _, b := range append([][]byte{c.Record, c.Snapshot}, bodies(c.Effects)...) {
		if bytes.Contains(b, []byte(secret)) {
			l.wrong("commit %d of %s has a secret in it", revision, c.Thread)
		}
	}
	emitted := map[string]bool{}
	for _, t := range tokens(c.Record) {
		switch t.kind {
		case tokenResult:
			call := c.Thread + "/" + t.fields[0]
			if l.results[call]++; l.results[call] > 1 {
				l.wrong("call %s has %d results in the journal", call, l.results[call])
			}
		case tokenDecision:
			l.decision(c.Thread, t, revision)
		case tokenDurable:
			emitted[t.text] = true
			l.landed[t.text] = true
		case tokenPlain:
			l.landed[t.text] = true
		}
	}
	for i, e := range c.Effects {
		for _, t := range tokens(e.Body) {
			if !emitted[t.text] {
				l.wrong("effect %s is in commit %d of %s, whose record does not emit it", t.text, revision, c.Thread)
			}
			delete(emitted, t.text)
			ref := engine.EffectRef{Thread: c.Thread, Revision: revision, Index: uint32(i)}
			if before := l.owed[t.text]; before != "" {
				l.wrong("effect %s is in the outbox as %s and as %s", t.text, before, ref)
			}
			l.owed[t.text], l.entry[ref] = ref.String(), t.text
			l.stats.Durable++
		}
	}
	for _, t := range slices.Sorted(maps.Keys(emitted)) {
		l.wrong("commit %d of %s emits effect %s, which is not in the outbox", revision, c.Thread, t)
	}
}

func bodies(es []engine.JournalEffect) (bs [][]byte) {
	for _, e := range es {
		bs = append(bs, e.Body)
	}
	return bs
}

// decision notes that the answer to a ticket landed.
func (l *ledger) decision(thread string, t token, revision uint64) {
	ticket, text := thread+" "+t.fields[0], t.fields[1]
	l.decisions[t.text+thread]++
	if n := l.decisions[t.text+thread]; n > 1 {
		l.wrong("decision %s was applied %d times in %s", t.text, n, thread)
	}
	if before, ok := l.decided[ticket]; ok {
		l.wrong("ticket %s was answered by %s and by %s", ticket, before, text)
	}
	l.decided[ticket] = text
	call := thread + "/" + callOf(t.fields[0])
	l.answers[call] = append(l.answers[call], answer{revision, strings.HasPrefix(text, "yes")})
	l.stats.Decisions++
}

// callOf returns the call that a ticket is about: tickets are run/step/call/number.
func callOf(ticket string) string {
	parts := strings.Split(ticket, "/")
	if len(parts) < 2 {
		return ""
	}
	return parts[len(parts)-2]
}

// body notes that a call's body begins, and checks that it may. known says that the
// owner has its result in memory; asked that it needs a yes. seen is the revision that
// the process is at for certain.
func (l *ledger) body(process, thread, call string, seen uint64, known, asked bool) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := thread + "/" + call
	l.bodies[key]++
	l.stats.Bodies++
	if l.bodies[key] > 1 {
		l.stats.Reruns++
	}
	if known {
		l.wrong("%s runs call %s again, and knows its result", process, key)
	}
	if seen >= uint64(len(l.thread(thread).commits)) && l.results[key] > 0 {
		l.wrong("%s runs call %s again, and has committed its result", process, key)
	}
	// Only what the process knows counts: one that somebody took over from may go on.
	yes, answered := false, false
	for _, a := range l.answers[key] {
		if a.revision <= seen {
			yes, answered = a.yes, true
		}
	}
	if answered && !yes {
		l.wrong("%s runs call %s, which was denied", process, key)
	}
	if asked && !yes {
		l.wrong("%s runs call %s, which nobody allowed", process, key)
	}
	return l.bodies[key]
}

// image is what a store has to show of a thread at a revision.
func (l *ledger) image(thread string, revision uint64) engine.JournalImage {
	i := engine.JournalImage{Revision: revision}
	for n, c := range l.thread(thread).commits[:revision] {
		rev := uint64(n) + 1
		i.Epoch, i.LastID = c.epoch, c.commit.ID
		i.Tail = append(i.Tail, engine.JournalRecord{Revision: rev, ID: c.commit.ID, Time: c.commit.Time, Record: c.commit.Record})
		if c.commit.Snapshot != nil {
			i.Snapshot, i.SnapshotAt, i.Tail = c.commit.Snapshot, rev, nil
		}
	}
	return i
}

// journal returns all that landed, without the ids of commits.
func (l *ledger) journal() (lines []string) {
	for _, id := range slices.Sorted(maps.Keys(l.threads)) {
		for i, c := range l.threads[id].commits {
			line := fmt.Sprintf("%s %d epoch %d %d %s", id, i+1, c.epoch, c.commit.Time.UnixNano(), c.commit.Record)
			for _, e := range c.commit.Effects {
				line += fmt.Sprintf(" %s %s", e.Lane, e.Body)
			}
			lines = append(lines, fmt.Sprint(line, c.commit.Settles))
		}
	}
	return lines
}
