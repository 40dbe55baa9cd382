package recording

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/plugins/trace"
)

// Recording is what is known of the runs whose events it got. It is an
// engine.Observer, for any number of engines. It is safe for concurrent use.
type Recording struct {
	source string

	mu      sync.Mutex
	live    bool
	begun   bool
	zero    time.Time // of the first event
	said    []string  // by Note
	lost    int       // events, by lines that tell so
	runs    []*run
	spans   []*span
	commits []*commit
	calls   []*call
	effects []*effect
	slab    []span             // room for the next spans
	byRun   map[string]*run    // the last run of an id
	threads map[string]*thread // the last thread of an id
	order   []*thread
	streams map[string]*stream // by the run at the top
	gaps    []*session         // those of all streams, in order
	used    map[string]int     // how often an id was given
	kinds   map[string]keyKind
	sorts   map[string][]*run // runs whose base has a key that may turn out to be a table

	ruled  atomic.Bool // what is added was written by rules
	log    []ref       // what changed, one entry for each change that somebody may have to hear of
	served uint64      // the latest cursor that was given out
	told   uint64      // version of the notes and the other members of the view itself
}

// ref is an item that changed.
type ref struct {
	kind  itemKind
	index int32
}

type itemKind uint8

const (
	ofView itemKind = iota
	ofRuns
	ofSpans
	ofCommits
	ofCalls
	ofEffects
)

// item is a member of the view. Its version is the place in the log of its last change.
type item struct {
	version uint64
	index   int32
}

// New returns an empty recording. The source, such as the name of a file, is for people.
func New(source string) *Recording {
	return &Recording{
		source: source, byRun: map[string]*run{}, threads: map[string]*thread{}, streams: map[string]*stream{},
		used: map[string]int{}, kinds: map[string]keyKind{}, sorts: map[string][]*run{},
	}
}

// Observe takes in an event as it is emitted. What is not to be told of it is hidden by
// the default rules of package trace; for others, give it what trace.Detailed returns.
func (r *Recording) Observe(e engine.Event) {
	if e == nil {
		return
	}
	e = trace.Detailed(e, trace.Rules{}) // before the lock: it takes the longest
	r.mu.Lock()
	defer r.mu.Unlock()
	r.take(e)
}

// Add takes in a line of a trace. Until one says that it is a trace, and so was written by
// rules, events are treated as by Observe.
func (r *Recording) Add(l trace.Line) {
	e := l.Event
	if e != nil && !r.ruled.Load() {
		e = trace.Detailed(e, trace.Rules{})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.Version > 0 {
		r.ruled.Store(true)
	}
	if e != nil {
		r.take(e)
	}
	if l.Dropped > 0 {
		r.lost += min(l.Dropped, most-r.lost)
		r.viewChanged()
	}
}

// most bounds counts that come from outside.
const most = 1 << 53

// Note adds a note for those who look at the recording, such as what could not be read.
func (r *Recording) Note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, oneLine(text))
	r.viewChanged()
}

// SetLive says whether more may come, for those who look at the recording.
func (r *Recording) SetLive(live bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live != live {
		r.live = live
		r.viewChanged()
	}
}

// changed notes that an item did. What nobody has heard of since its last change needs
// no other entry in the log.
func (r *Recording) changed(k itemKind, it *item) { r.change(k, it.index, &it.version) }

func (r *Recording) viewChanged() { r.change(ofView, 0, &r.told) }

func (r *Recording) change(k itemKind, index int32, version *uint64) {
	if *version <= r.served {
		r.log = append(r.log, ref{k, index})
		*version = uint64(len(r.log))
	}
}

// micros is a time as the view has it.
func (r *Recording) micros(t time.Time) float64 {
	return float64(t.Sub(r.zero)) / float64(time.Microsecond)
}

// View returns all that is known.
func (r *Recording) View() View { return r.view(r.commitView) }

// Outline is View without the explanations of changes, which are much of it and seldom
// read: Commit has them.
func (r *Recording) Outline() View { return r.view(r.commitOutline) }

// Commit returns the commit of an id, and whether there is one.
func (r *Recording) Commit(id string) (Commit, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.commits {
		if c.ID == id {
			return r.commitView(c), true
		}
	}
	return Commit{}, false
}

func (r *Recording) view(commitView func(*commit) Commit) View {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := View{
		Version: 1, Source: r.source, Zero: r.zero.UTC(), Live: r.live, Dropped: r.missing(), Notes: r.notes(),
		Runs:    make([]Run, len(r.runs)),
		Spans:   make([]Span, len(r.spans)),
		Commits: make([]Commit, len(r.commits)),
		Calls:   make([]Call, len(r.calls)),
		Effects: make([]Effect, len(r.effects)),
	}
	for i, x := range r.runs {
		v.Runs[i] = x.Run
	}
	for i, s := range r.spans {
		v.Spans[i] = s.Span
	}
	for i, c := range r.commits {
		v.Commits[i] = commitView(c)
	}
	for i, c := range r.calls {
		v.Calls[i] = r.callView(c)
	}
	for i, e := range r.effects {
		v.Effects[i] = e.Effect
	}
	return v
}

// Cursor returns the cursor of what is known by now, for Since.
func (r *Recording) Cursor() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.served = uint64(len(r.log))
	return r.served
}

// Since returns what changed since a cursor that an earlier call returned, or with 0
// everything, and the cursor for the next call. It costs as much as there is to tell.
func (r *Recording) Since(cursor uint64) (Patch, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cursor > r.served {
		cursor = 0 // not of this recording
	}
	var p Patch
	if cursor == 0 {
		zero := r.zero.UTC()
		p.Source, p.Zero = r.source, &zero
	}
	var items [ofEffects + 1][]int32
	for i := cursor; i < uint64(len(r.log)); i++ {
		if at := r.log[i]; r.version(at) == i+1 { // else it changed again
			items[at.kind] = append(items[at.kind], at.index)
		}
	}
	for _, list := range items {
		slices.Sort(list) // as in the view
	}
	if len(items[ofView]) > 0 {
		live, dropped := r.live, r.missing()
		p.Live, p.Dropped, p.Notes = &live, &dropped, append([]string{}, r.notes()...)
	}
	p.Runs = pick(items[ofRuns], func(i int32) Run { return r.runs[i].Run })
	p.Spans = pick(items[ofSpans], func(i int32) Span { return r.spans[i].Span })
	p.Commits = pick(items[ofCommits], func(i int32) Commit { return r.commitView(r.commits[i]) })
	p.Calls = pick(items[ofCalls], func(i int32) Call { return r.callView(r.calls[i]) })
	p.Effects = pick(items[ofEffects], func(i int32) Effect { return r.effects[i].Effect })
	r.served = uint64(len(r.log))
	return p, r.served
}

func pick[T any](indexes []int32, item func(int32) T) []T {
	if len(indexes) == 0 {
		return nil
	}
	out := make([]T, len(indexes))
	for i, at := range indexes {
		out[i] = item(at)
	}
	return out
}

// version is that of an item.
func (r *Recording) version(at ref) uint64 {
	switch at.kind {
	case ofRuns:
		return r.runs[at.index].version
	case ofSpans:
		return r.spans[at.index].version
	case ofCommits:
		return r.commits[at.index].version
	case ofCalls:
		return r.calls[at.index].version
	case ofEffects:
		return r.effects[at.index].version
	}
	return r.told
}
