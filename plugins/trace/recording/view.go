package recording

import (
	"time"

	"github.com/ddd26017/fixpoint/inference"
)

// View is all that a recording knows, as data for a page to draw. Times are
// microseconds since Zero. What is missing is unknown, or there is none. Ids are
// unique in the view. The slices are the caller's own, what they hold is not to be
// changed.
type View struct {
	Version int       `json:"version"` // of this form: 1
	Source  string    `json:"source"`
	Zero    time.Time `json:"zero"`
	Live    bool      `json:"live,omitempty"`    // more may come
	Dropped int       `json:"dropped,omitempty"` // events that are known to be missing
	Notes   []string  `json:"notes,omitempty"`
	Runs    []Run     `json:"runs"`
	Spans   []Span    `json:"spans"`
	Commits []Commit  `json:"commits"`
	Calls   []Call    `json:"calls"`
	Effects []Effect  `json:"effects"`
}

// Patch is what changed in a View: its items replace those of the same id, or are new,
// and come in the order that they have in the view. Its other members, where they are
// there, replace the view's; Source and Zero are there in the first one only.
type Patch struct {
	Source  string     `json:"source,omitempty"`
	Zero    *time.Time `json:"zero,omitempty"`
	Live    *bool      `json:"live,omitempty"`
	Dropped *int       `json:"dropped,omitempty"`
	Notes   []string   `json:"notes,omitzero"`
	Runs    []Run      `json:"runs,omitempty"`
	Spans   []Span     `json:"spans,omitempty"`
	Commits []Commit   `json:"commits,omitempty"`
	Calls   []Call     `json:"calls,omitempty"`
	Effects []Effect   `json:"effects,omitempty"`
}

// Run is a run, or what somebody did to a thread outside one.
type Run struct {
	ID        string   `json:"id"`
	Parent    string   `json:"parent,omitempty"` // run that delegated to it; the call's body is the parent of its span
	Thread    string   `json:"thread"`
	Agent     string   `json:"agent"`
	Mode      string   `json:"mode,omitempty"`
	Input     string   `json:"input,omitempty"`
	Status    string   `json:"status"` // running, waiting or done
	Reason    string   `json:"reason,omitempty"`
	Detail    string   `json:"detail,omitempty"`
	Error     string   `json:"error,omitempty"`
	Start     float64  `json:"start"`
	End       *float64 `json:"end,omitempty"`
	Steps     int      `json:"steps"`
	TokensIn  int64    `json:"tokens_in"`
	TokensOut int64    `json:"tokens_out"`
	Conflicts int      `json:"conflicts"`
	Retries   int      `json:"retries"` // calls of hooks and action handlers after a conflict
	Blocked   int      `json:"blocked"` // tool calls that a gate or a person did not let run
	Failed    int      `json:"failed"`  // hooks, gates, actions, effects, model and tool calls that failed
	Base      []Change `json:"base,omitempty"`
	BaseRev   uint64   `json:"base_rev"`
}

// Span is a stretch of a run's time.
type Span struct {
	ID        string         `json:"id"`
	Run       string         `json:"run"`
	Parent    string         `json:"parent,omitempty"`
	Kind      string         `json:"kind"`
	Name      string         `json:"name"` // of a hook, a gate or an action: as the engine names it
	Start     float64        `json:"start"`
	End       *float64       `json:"end,omitempty"` // nil while it is open
	Plugin    string         `json:"plugin,omitempty"`
	Tier      int            `json:"tier,omitempty"`
	Step      int            `json:"step,omitempty"`
	Phase     string         `json:"phase,omitempty"`
	Round     int            `json:"round,omitempty"`
	Call      string         `json:"call,omitempty"` // id of a Call
	Try       int            `json:"try,omitempty"`  // of a hook or an action: 1, or more after conflicts
	Status    string         `json:"status"`
	Text      string         `json:"text,omitempty"`
	RevBefore uint64         `json:"rev_before,omitempty"`
	RevAfter  uint64         `json:"rev_after,omitempty"`
	Facts     map[string]any `json:"facts,omitempty"`
}

// Kinds of spans.
const (
	KindRun    = "run"
	KindStep   = "step"
	KindPhase  = "phase"
	KindHook   = "hook"
	KindGate   = "gate"
	KindRound  = "round"
	KindAction = "action"
	KindEffect = "effect"
	KindModel  = "model"
	KindCall   = "call"
	KindBody   = "body"
	KindWait   = "wait"
	KindMark   = "mark"
)

// Commit is one change of a thread's state.
type Commit struct {
	ID        string         `json:"id"`
	Run       string         `json:"run"`
	Rev       uint64         `json:"rev"`
	At        float64        `json:"at"`
	Step      int            `json:"step"`
	Phase     string         `json:"phase,omitempty"`
	PhaseSpan string         `json:"phase_span,omitempty"`
	Round     int            `json:"round,omitempty"`
	Call      string         `json:"call,omitempty"`  // id of a Call
	Retry     bool           `json:"retry,omitempty"` // of what lost a conflict
	Writes    []Write        `json:"writes"`
	Changes   []Change       `json:"changes"`
	Conflicts []ConflictItem `json:"conflicts,omitempty"`
}

// Write is an update that was committed, or that somebody wanted to commit.
type Write struct {
	Plugin string         `json:"plugin"`
	Hook   string         `json:"hook,omitempty"`
	Key    string         `json:"key"`
	Entry  string         `json:"entry,omitempty"`
	Op     string         `json:"op"`
	Value  inference.JSON `json:"value,omitempty"` // its argument
}

// Change is what became of a key or of one of its entries.
type Change struct {
	Key    string         `json:"key"`
	Entry  string         `json:"entry,omitempty"`
	At     *int           `json:"at,omitempty"`    // of a list: that many elements stay, Value has those that follow
	Value  inference.JSON `json:"value,omitempty"` // empty when the key or the entry is gone
	Cut    int            `json:"cut,omitempty"`   // bytes of a value that was too long: Value is a string with its beginning
	Hidden bool           `json:"hidden,omitempty"`
	Why    []string       `json:"why,omitempty"` // not in Run.Base, and not in what Outline returns
}

// ConflictItem is a conflict over what a commit wrote.
type ConflictItem struct {
	Key        string  `json:"key"`
	Entry      string  `json:"entry,omitempty"`
	Winner     string  `json:"winner"`
	WinnerHook string  `json:"winner_hook,omitempty"`
	Loser      string  `json:"loser"`
	Hook       string  `json:"hook,omitempty"` // of the loser, or its action
	Fate       string  `json:"fate"`           // retried or refused
	Lost       []Write `json:"lost,omitempty"` // all that the loser wanted to write
}

// Call is a tool call.
type Call struct {
	ID          string           `json:"id"`   // run/step/call
	Call        string           `json:"call"` // as the model named it
	Run         string           `json:"run"`
	Step        int              `json:"step"`
	Tool        string           `json:"tool"`
	Args        inference.JSON   `json:"args,omitempty"` // as they are by now; those that are no JSON are in a string
	Span        string           `json:"span,omitempty"`
	Status      string           `json:"status"` // running, waiting or done
	Outcome     string           `json:"outcome,omitempty"`
	Result      string           `json:"result,omitempty"`
	Error       bool             `json:"error,omitempty"`
	Votes       []VoteItem       `json:"votes,omitempty"`
	Resolutions []ResolutionItem `json:"resolutions,omitempty"`
	Clashes     []string         `json:"clashes,omitempty"`
	Edits       []EditItem       `json:"edits,omitempty"`
	Tickets     []TicketItem     `json:"tickets,omitempty"`
	Why         []string         `json:"why"`
}

// VoteItem is what a gate said.
type VoteItem struct {
	Pass     int    `json:"pass"` // counts from 1, also when a run was resumed between
	Plugin   string `json:"plugin"`
	Gate     string `json:"gate"`
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitempty"`
	Edits    bool   `json:"edits,omitempty"`
	Error    string `json:"error,omitempty"`
}

// ResolutionItem is what a pass of all gates came to.
type ResolutionItem struct {
	Pass     int    `json:"pass"`
	Decision string `json:"decision"`
	Plugin   string `json:"plugin,omitempty"`
	Cause    string `json:"cause"`
	Reason   string `json:"reason,omitempty"`
}

// EditItem is a change of a call's arguments.
type EditItem struct {
	Plugin string         `json:"plugin"`
	Before inference.JSON `json:"before,omitempty"`
	After  inference.JSON `json:"after,omitempty"`
}

// TicketItem is a question to people about a call.
type TicketItem struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"`
	Message  string `json:"message"`
	Plugin   string `json:"plugin"`
	Answered bool   `json:"answered,omitempty"`
	Approved bool   `json:"approved,omitempty"`
	By       string `json:"by,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// Effect is an effect and how its delivery went.
type Effect struct {
	ID      string  `json:"id"`
	Run     string  `json:"run"`
	Effect  string  `json:"effect"`
	Span    string  `json:"span,omitempty"` // id of its span
	Plugin  string  `json:"plugin"`         // that emitted it
	Handler string  `json:"handler,omitempty"`
	At      float64 `json:"at"`
	Rev     uint64  `json:"rev,omitempty"` // of the commit that carried it
	Error   string  `json:"error,omitempty"`
	Step    int     `json:"step,omitempty"`
	Phase   string  `json:"phase,omitempty"`
}
