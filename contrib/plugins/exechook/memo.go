package exechook

import (
	"cmp"
	"container/list"
	"slices"
	"strings"
	"sync"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
)

// memoSize is how many calls are remembered at the same time.
const memoSize = 1024

// memo remembers what programs said about calls that are being decided, since gates
// are asked again about the same arguments and a program shall run once. It belongs to
// the plugin's value because a gate cannot write state. Nothing is wrong when it
// forgets: programs are run again. An entry lives to the end of its step, and beyond
// memoSize calls the one that was not used for longest goes.
type memo struct {
	mu     sync.Mutex
	byCall map[callKey]*list.Element // of *callMemo
	recent list.List                 // the latest first
	made   int
}

// callKey identifies a call for the run that judges it.
type callKey struct {
	run  string
	step int
	call string
}

// callMemo is what is remembered about a call. Its fields are guarded by memo.mu.
type callMemo struct {
	callKey
	order    int
	asked    map[string]question             // by fingerprint
	verdicts map[string]verdict              // by fingerprint and answered ticket
	rewrites map[string]map[string]statement // by fingerprint: the rules that made these arguments
	from     map[string]string               // by fingerprint: the arguments that these were made from
	told     []told
}

// statement is the opinion that a rule gave together with arguments that it wrote.
type statement struct {
	opinion Opinion
	reason  string
}

// question is a call as a resolver needs it to ask programs about it.
type question struct {
	call  inference.ToolCall
	tool  string // its name for programs
	input map[string]any
}

// verdict is the gate's vote.
type verdict struct {
	decision gate.Decision
	err      error
}

// told is something to pass on at the end of the step.
type told struct {
	notice  Notice // zero when there is none
	context string // for the model
}

// with calls fn with what is remembered about a call.
func (m *memo) with(key callKey, fn func(*callMemo)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	el, ok := m.byCall[key]
	if !ok {
		if m.byCall == nil {
			m.byCall = map[callKey]*list.Element{}
		}
		m.made++
		el = m.recent.PushFront(&callMemo{callKey: key, order: m.made, asked: map[string]question{},
			verdicts: map[string]verdict{}, rewrites: map[string]map[string]statement{}, from: map[string]string{}})
		m.byCall[key] = el
		if m.recent.Len() > memoSize {
			m.remove(m.recent.Back())
		}
	}
	m.recent.MoveToFront(el)
	fn(el.Value.(*callMemo))
}

func (m *memo) remove(el *list.Element) {
	delete(m.byCall, el.Value.(*callMemo).callKey)
	m.recent.Remove(el)
}

// question returns the call that a ticket is about.
func (m *memo) question(t gate.Ticket) (key callKey, q question, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for el := m.recent.Front(); el != nil; el = el.Next() {
		c := el.Value.(*callMemo)
		// A ticket's id begins with that of its run and a slash.
		if q, ok := c.asked[t.Fingerprint]; ok && c.call == t.Call && strings.HasPrefix(t.ID, c.run+"/") {
			return c.callKey, q, true
		}
	}
	return key, q, false
}

// decided drops the questions about a call that is over: one that comes now is about
// its result, and not whether it may run.
func (m *memo) decided(key callKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if el, ok := m.byCall[key]; ok {
		clear(el.Value.(*callMemo).asked)
	}
}

// pending reports whether there is anything to pass on about the run's calls. If not,
// what is remembered about them is dropped.
func (m *memo) pending(run string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, el := range m.byCall {
		if key.run == run && len(el.Value.(*callMemo).told) > 0 {
			return true
		}
	}
	for key, el := range m.byCall {
		if key.run == run {
			m.remove(el)
		}
	}
	return false
}

// forget drops what is remembered about the run's calls and returns what is to be
// passed on, in the order of the calls.
func (m *memo) forget(run string) (all []told) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var gone []*callMemo
	for key, el := range m.byCall {
		if key.run == run {
			gone = append(gone, el.Value.(*callMemo))
			m.remove(el)
		}
	}
	slices.SortFunc(gone, func(a, b *callMemo) int { return cmp.Compare(a.order, b.order) })
	for _, c := range gone {
		all = append(all, c.told...)
	}
	return all
}
