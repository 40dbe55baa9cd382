package confirm

import (
	"context"
	"fmt"
	"slices"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// What was approved beyond one call is kept under what it covers: "all", "tool:NAME" or
// "call:FINGERPRINT" with the gate.Fingerprint of the call, or of its very text if there
// are several ways to read its arguments.
var (
	// Grants holds the approvals of the run, with how many calls are left, or Forever.
	Grants = state.NewTable[string]("confirm.grants", state.Options[int64]{})
	// Thread holds those of the thread.
	Thread = state.NewSet[string]("confirm.thread", state.Options[string]{Scope: state.ScopeThread})
	// Profile holds those of an owner across all runs, sorted. Change it with its own
	// Update to take approvals back; runs read it when they start.
	Profile = state.NewProfileKey("confirm.granted", state.Options[[]string]{})

	// used holds the gate.Fingerprint of each call that a counted approval was spent on, by
	// "step/id", so that a call that is judged again does not need another.
	used = state.NewTable[string]("confirm.used", state.Options[string]{})
)

// auto is the entry of Grants for Settings.Auto, once some of it is spent.
const auto = "auto"

// entry is where an approval is kept, or "" for one of this call alone.
func (c Covers) entry(call inference.ToolCall) string {
	switch c {
	case CoversAll:
		return "all"
	case CoversCall:
		return "call:" + exactly(call)
	default:
		return "tool:" + call.Name
	}
}

// granted looks for an approval given earlier that covers the call. It returns where it
// is kept, and for a counted one how many calls were left, else Forever.
func granted(pc *phase.Context, s Settings) (entry string, left int64, ok bool) {
	snap, call := pc.Snapshot(), pc.Call()
	covering := []string{CoversCall.entry(call), CoversTool.entry(call), CoversAll.entry(call)}
	for _, e := range covering {
		if n, _ := Grants.Get(snap, e); n == Forever || Thread.Has(snap, e) {
			return e, Forever, true
		}
	}
	if s.Auto == Forever {
		return auto, Forever, true
	}
	if !own(pc) { // BeforeToolExecute would not be ours to count it at
		return "", 0, false
	}
	if print, _ := used.Get(snap, key(pc)); print == gate.Fingerprint(call) {
		return "", Forever, true
	}
	for _, e := range append(covering, auto) {
		n, known := Grants.Get(snap, e)
		if e == auto && !known {
			n = s.Auto
		}
		if n > 0 {
			return e, n, true
		}
	}
	return "", 0, false
}

// key is the key of the call in used. Models use an id again in another step.
func key(pc *phase.Context) string { return fmt.Sprintf("%d/%s", pc.Run().Step, pc.Call().ID) }

// own reports whether the call is of the very run whose state is looked at, and not of a
// delegate of it: not even if that has the id and the arguments of one that runs already.
func own(pc *phase.Context) bool {
	c, ok := engine.ToolCalls.Get(pc.Snapshot(), pc.Call().ID)
	judged := pc.Phase() != phase.ToolGate || c.Status == engine.CallNew || c.Status == engine.CallResuming
	return ok && judged && c.Call == pc.Call()
}

// Approval is an approval to keep across runs.
type Approval struct {
	Owner string `json:"owner"`
	Entry string `json:"entry"` // as in Profile
}

// Persist is the effect that keeps an approval in Options.Profiles.
var Persist = effects.NewSpec[Approval]("confirm.persist", effects.Durable())

func (p *plugin) persist(ctx context.Context, _ *state.Snapshot, a Approval) error {
	if p.Profiles == nil { // of a run that began with another configuration
		return fmt.Errorf("confirm: there are no Options.Profiles to keep the approval of %s in", a.Entry)
	}
	_, err := Profile.Update(ctx, p.Profiles, a.Owner, func(old []string) []string {
		at, found := slices.BinarySearch(old, a.Entry)
		if found {
			return old
		}
		return slices.Insert(slices.Clone(old), at, a.Entry)
	})
	return err
}

// recall takes the approvals of the owner over into the run.
func (p *plugin) recall(ctx context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	list, err := Profile.Get(ctx, p.Profiles, p.Owner(pc.Run()))
	for _, entry := range list {
		cmd.Update(Grants.Put(entry, Forever))
	}
	return cmd, err
}

// remember keeps what was approved beyond this call, and counts what was spent on it. It
// runs once per call, after the final yes.
func (p *plugin) remember(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
	s := Section.Get(pc)
	if !s.asks(pc.Tool()) {
		return cmd, nil
	}
	w, answered := said(pc)
	if !answered || !w.mine {
		if entry, left, ok := granted(pc, s); ok && left != Forever {
			cmd.Update(Grants.Put(entry, left-1), used.Put(key(pc), gate.Fingerprint(pc.Call())))
		}
		return cmd, nil
	}
	a, err := Parse(w.answer.Value)
	if err != nil || p.offer(s, pc.Tool()).suits(a) != nil {
		return cmd, nil // it counted for nothing: somebody else approved
	}
	entry := a.Covers.entry(pc.Call())
	switch {
	case a.Choice == Times:
		cmd.Update(Grants.Put(entry, int64(a.N)))
	case a.Choice == Always && a.Scope == ScopeThread:
		cmd.Update(Thread.Add(entry))
	case a.Choice == Always:
		cmd.Update(Grants.Put(entry, Forever))
		if a.Scope == ScopePersistent {
			cmd.Emit(Persist.New(Approval{p.Owner(pc.Run()), entry}))
		}
	}
	return cmd, nil
}
