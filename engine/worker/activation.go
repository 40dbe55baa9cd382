package worker

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
)

// Kind says what an activation does.
type Kind string

// The kinds. The zero kind is KindInput.
const (
	KindInput  Kind = "input"  // starts a run of Agent with Messages; none goes on with the thread as it is
	KindDecide Kind = "decide" // answers open tickets of the run that waits
	KindCancel Kind = "cancel" // ends what is under way or waits, and drops what was submitted before
	KindWake   Kind = "wake"   // goes on with a run whose tickets' time ran out; else it does nothing
)

// Priority says how often a lane has its turn. The zero priority is Normal.
type Priority string

// The priorities. A lower one is served less often, and never starves.
const (
	High   Priority = "high"
	Normal Priority = "normal"
	Low    Priority = "low"
)

func (p Priority) orNormal() Priority {
	if p == "" {
		return Normal
	}
	return p
}

// Activation is something for a thread to do. Activations of a thread are applied one
// after the other in the order in which they were submitted, but decisions, wake-ups and
// cancels pass inputs that wait until a run's tickets are answered, and one that has a
// NotBefore is passed by others until then.
type Activation struct {
	Thread string
	Kind   Kind

	// Agent names the spec of a KindInput. The worker looks it up.
	Agent         string
	Messages      []inference.Message
	Mode, Adapter string

	// Decisions of a KindDecide. They apply all or not at all. Their values are kept in
	// the inbox: secrets need ClientConfig.Vault.
	Decisions []engine.Decision

	// Reason of a KindCancel, for the run's end to tell.
	Reason string

	NotBefore time.Time // not earlier than this; zero: at once
	Priority  Priority
	Tenant    string // lanes of tenants have turns with each other; "" is a tenant too
	// Key makes a repeat harmless: a second activation of the thread with the same key
	// is the first one, as long as that is among the last Window activations.
	Key string
}

// Receipt says where an activation is.
type Receipt struct {
	Thread string
	Seq    uint64 // in the thread's inbox; later ones are higher
	// Run is the id of the run that a KindInput starts, and unique for the others too.
	Run string
	// Repeated means that an activation with the same key was there already, which is the
	// one that the receipt is for.
	Repeated bool
}

// ErrActivation is returned for an activation that cannot be submitted.
var ErrActivation = errors.New("worker: invalid activation")

func (a Activation) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrActivation, fmt.Sprintf(format, args...))
	}
	if a.Thread == "" {
		return bad("name a thread")
	}
	if IsInbox(a.Thread) {
		return bad("thread %q is an inbox; ids that start with %q are reserved", a.Thread, InboxPrefix)
	}
	if !slices.Contains([]Priority{"", High, Normal, Low}, a.Priority) {
		return bad("priority %q; use high, normal or low", a.Priority)
	}
	given := Kind("")
	switch {
	case a.Agent != "" || len(a.Messages) > 0 || a.Mode != "" || a.Adapter != "":
		given = KindInput
	case len(a.Decisions) > 0:
		given = KindDecide
	case a.Reason != "":
		given = KindCancel
	}
	switch a.Kind {
	case "", KindInput:
		if a.Agent == "" {
			return bad("an input names the agent to run")
		}
		if len(a.Decisions) > 0 || a.Reason != "" {
			return bad("an input has no decisions and no reason")
		}
	case KindDecide:
		if given != KindDecide || a.Reason != "" {
			return bad("decisions come alone, and at least one")
		}
	case KindCancel, KindWake:
		if given != "" && given != a.Kind || given == KindCancel && a.Kind == KindWake {
			return bad("a %s has no agent, no messages and no decisions", a.Kind)
		}
	default:
		return bad("kind %q; use input, decide, cancel or wake", a.Kind)
	}
	return nil
}

// InboxPrefix starts the ids of the journal threads that are inboxes. The rest is the id
// of the thread that the inbox is of.
const InboxPrefix = "fixpoint.inbox/"

// IsInbox reports whether a journal thread is an inbox, which no engine can open.
func IsInbox(id string) bool { return strings.HasPrefix(id, InboxPrefix) }

// lanePrefix starts the lanes that wake-ups are in.
const lanePrefix = "run/"

// Lane is where the wake-ups of a priority and tenant wait for their turn.
type Lane struct {
	Priority Priority
	Tenant   string
}

// String returns the lane's name in the store, "run/PRIORITY/TENANT".
func (l Lane) String() string {
	return lanePrefix + string(l.Priority.orNormal()) + "/" + url.PathEscape(l.Tenant)
}

// ParseLane reads what String wrote; false for another lane.
func ParseLane(name string) (Lane, bool) {
	rest, ours := strings.CutPrefix(name, lanePrefix)
	p, escaped, cut := strings.Cut(rest, "/")
	tenant, err := url.PathUnescape(escaped)
	l := Lane{Priority(p), tenant}
	return l, ours && cut && err == nil && slices.Contains([]Priority{High, Normal, Low}, l.Priority) && l.String() == name
}
