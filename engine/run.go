package engine

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/fanout"
	"github.com/ddd26017/fixpoint/internal/pushseq"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// engineName is the owner of the engine's own writes. No plugin may have it.
const engineName = "engine"

// run is a run in progress, or the stand-in for one while a phase or a command is
// run by itself. Its position is in state; what it holds besides are its parts.
type run struct {
	eng        *Engine
	th         *Thread
	parent     *run
	depth      int
	input      Input
	info       phase.RunInfo // without the step, see moment
	crew       *fanout.Crew  // of the run and its delegates
	out        *emitter
	rouse      func()      // of out, if there is one
	held       *heldEvents // set while a delegate's events wait for their turn
	dispatch   *effects.Dispatcher
	background pushseq.Pile[effects.Outcome] // of background effects, until the drain
	stats      stats
	lease      *Lease                    // of the thread, if it is leased
	asides     []*aside                  // delegates at work in the background, oldest first
	used       atomic.Int64              // tokens of its model calls and those of its delegates, also before state has them
	secrets    map[string]inference.JSON // values of secret answers by ticket, never in state

	agent   atomic.Pointer[agent]         // changes at a handoff
	moment  atomic.Pointer[phase.RunInfo] // info with the step
	current atomic.Pointer[exchange]
}

// exchange is the model call of the current step.
type exchange struct {
	request  *inference.Request
	response *inference.Response
	err      error
}

// heldEvents keeps the events of a delegate that runs beside others until its call
// has its turn, so that the order of events does not depend on timing.
type heldEvents = pushseq.Pile[Event]

func (t *Thread) newRun(a *agent, in Input, parent *run, held *heldEvents) (*run, error) {
	c := &t.eng.config
	r := &run{eng: t.eng, th: t, parent: parent, input: in}
	r.agent.Store(a)
	r.info = phase.RunInfo{
		ID: in.RunID, Thread: t.id, Started: c.Now(), Mode: in.Mode, Adapter: in.Adapter,
	}
	if r.info.ID == "" {
		r.info.ID = c.NewID()
	}
	if parent != nil {
		r.info.Parent = parent.info.ID
		r.depth = parent.depth + 1
		r.crew = parent.crew
		r.out, r.held = parent.out, cmp.Or(held, parent.held)
	} else {
		r.crew = &fanout.Crew{}
		r.out = newEmitter(c.Observers, in.sink, c.Limits.EventBuffer, c.Limits.Grace)
	}
	if r.moment.Store(&r.info); r.out != nil {
		r.rouse = r.out.Rouse
	}
	var err error
	r.dispatch, err = t.eng.dispatcher(c.EffectMode, r.effectDone)
	return r, err
}

// leave lets go of the thread in the store. That comes before anybody hears that the
// run ended or waits: who hears it may go on elsewhere.
func (r *run) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), r.eng.config.Limits.Grace)
	defer cancel()
	r.drain(ctx)
	r.th.chain.flush()
	r.th.chain.giveUp(ctx, r.lease)
	r.lease = nil
}

// release ends what newRun started.
func (r *run) release() {
	r.leave()
	if r.parent == nil {
		r.crew.End()
		r.out.Shut()
	}
}

func (r *run) step() int { return r.moment.Load().Step }

func (r *run) setStep(n int) {
	info := r.info
	info.Step = n
	r.moment.Store(&info)
}

func (r *run) now() time.Time { return r.eng.config.Now() }

// scene is where in a run something happens.
type scene struct {
	phase phase.Phase
	round int
	call  *phase.CallFrame // of tool phases, else nil; replaced and never changed, since contexts keep it
	err   error
	told  bool // somebody gets the phase's report
	retry bool // of what lost a conflict
	aside bool // done by somebody beside the run, who never waits for observers
}

// about changes what is known of the call.
func (sc *scene) about(change func(*phase.CallFrame)) {
	var c phase.CallFrame
	if sc.call != nil {
		c = *sc.call
	}
	change(&c)
	sc.call = &c
}

func (sc *scene) callID() string {
	if sc.call == nil {
		return ""
	}
	return sc.call.Call.ID
}

// context builds what user code is told. It is the only place that does.
func (r *run) context(sc scene, snap *state.Snapshot) *phase.Context {
	f := phase.Frame{
		Phase:    sc.phase,
		Round:    sc.round,
		Run:      r.moment.Load(),
		Agent:    r.agent.Load().info,
		Snapshot: snap,
		Messages: Transcript.Get(snap),
		Call:     sc.call,
		Err:      sc.err,
	}
	if x := r.current.Load(); x != nil {
		f.Request, f.Response = x.request, x.response
	}
	if sc.call != nil && sc.call.Result.CallID != "" {
		sc.about(func(c *phase.CallFrame) { c.Result = phase.EditedResult(snap, c.Result) })
		f.Call = sc.call
	}
	return phase.NewContext(f)
}

// watched reports whether anybody gets events, so that callers can skip making them.
func (r *run) watched() bool { return r.out != nil }

// emit tells of an event unless nobody gets it. build is called at once, and must not
// be kept: then it costs no memory.
//
// The run is held back while an observer is too far behind, unless the scene is aside:
// an observer that itself does something to the run would wait for itself.
func (r *run) emit(sc scene, build func(Header) Event) {
	switch {
	case r.out == nil:
	case r.held != nil:
		r.held.Add(build(r.header(sc)))
	default:
		h := r.header(sc)
		r.out.Push(!sc.aside, func(seq uint64) Event { h.Seq = seq; return build(h) })
	}
}

func (r *run) header(sc scene) Header {
	return Header{
		Time:     r.now(),
		Run:      r.info.ID,
		Parent:   r.info.Parent,
		Thread:   r.info.Thread,
		Agent:    r.agent.Load().spec.ID,
		Step:     r.step(),
		Phase:    sc.phase,
		Revision: r.th.store.Snapshot().Revision(),
	}
}

// replay emits events that were held back while they were out of turn.
func (r *run) replay(held *heldEvents) {
	for _, e := range held.Take() {
		if r.held != nil {
			r.held.Add(e)
		} else {
			r.out.Push(true, func(seq uint64) Event { return numbered(e, seq) })
		}
	}
}

func (r *run) warn(sc scene, plugin, format string, args ...any) {
	if r.out != nil {
		r.emit(sc, func(h Header) Event {
			return Warning{Header: h, Plugin: plugin, Message: fmt.Sprintf(format, args...)}
		})
	}
}

// drain delivers what background effects are left and tells how all of them went.
// That is told here, not when it happens, since the order of events must not
// depend on the timing of a background.
func (r *run) drain(ctx context.Context) {
	// Failures are in each effect's outcome; the error of the drain repeats them.
	_ = r.dispatch.Close(ctx)
	if ctx.Err() != nil {
		// Given up, or ended in that very moment: then its outcome is about to be told.
		_ = r.dispatch.Close(context.WithoutCancel(ctx))
	}
	for _, o := range r.background.Take() {
		r.emit(scene{}, effectFinished(o))
	}
}

// effectDone is called by the dispatcher for every effect, in order of delivery.
func (r *run) effectDone(o effects.Outcome) {
	if tooLate(o) {
		return // deliver sees to it
	}
	r.outlet().over(o)
	r.stats.count(func(s *Stats) {
		if o.Err != nil {
			s.EffectsFailed++
		} else {
			s.EffectsDelivered++
		}
	})
	if r.out == nil {
		return
	}
	if r.eng.config.EffectMode == effects.Background {
		r.background.Add(o)
		return
	}
	r.emit(scene{aside: true}, effectFinished(o))
}

func effectFinished(o effects.Outcome) func(Header) Event {
	return func(h Header) Event {
		return EffectFinished{Header: h, ID: o.ID, Effect: o.Name, Plugin: o.Owner, Handler: o.Handler,
			Error: errText(o.Err), Began: o.Began, Duration: o.Duration}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
