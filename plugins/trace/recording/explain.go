package recording

import "github.com/ddd26017/fixpoint/inference"

// Query asks who wrote a key.
type Query struct {
	Thread   string // may be left out if the recording has one only, or with Run
	Run      string // any run on the thread; the answer does not go beyond its last commit
	Key      string
	Entry    string // of a table or set; "" for the whole key
	Revision uint64 // the last write at or before it is explained; 0 for the newest
}

// Explanation says who wrote a key. Its text tells it in sentences.
type Explanation struct {
	Thread, Key, Entry string
	Revision           uint64   // of the write; 0 if none is known
	Value              Value    // after it
	Before             Value    // before it
	Writers            []Writer // of the commit, in order; more than one for keys that merge
	Overwrote          *Writer  // the write before
	Losers             []Loser  // of a conflict over it
	Next               *Writer  // the write after it
	Notes              []string // what is not known
}

// Value is a value at some moment.
type Value struct {
	JSON    inference.JSON
	Known   bool // else nobody told
	Set     bool // else there is none: the key has its initial value, or the entry is gone
	Hidden  bool // by the rules of the trace
	CutFrom int  // bytes, if JSON is the beginning of a longer value
}

// Writer is somebody who wrote a key, and where.
type Writer struct {
	Revision uint64
	Run      string
	Plugin   string // "engine" for the engine itself
	Hook     string // "" if it was none
	Action   string // that was handled
	Call     string // tool call whose command it is, by the model's id
	Tool     string
	Step     int
	Phase    string // "" outside phases
	Round    int    // of actions; 0 for none
	Retry    bool   // it was called again after a conflict, and committed alone
	Op       string
	Value    inference.JSON // argument of the update
}

// Loser is somebody who lost a conflict over a key.
type Loser struct {
	Plugin, Hook, Action, Call string
	Winner                     string
	Wanted                     []Write // to the key
	Retry                      *Writer // what its retry wrote to the key
	Fate                       string  // what became of it, in words
}

// Explain says who wrote a key. The error names known keys or threads when the query
// has one that is unknown.
func (r *Recording) Explain(q Query) (Explanation, error) { return Explanation{}, nil }

// State returns the values that a thread's keys have at the query's revision, 0 being the
// newest; its Key and Entry are not used.
func (r *Recording) State(q Query) (State, error) { return State{}, nil }

// State is the state of a thread at a revision.
type State struct {
	Thread   string
	Revision uint64
	Keys     map[string]KeyState
}

// KeyState is the value of a key, or its entries.
type KeyState struct {
	Value   Value
	Entries map[string]Value // of a table or set, else nil
}

// Decision is the whole decision about a tool call.
type Decision struct {
	Call Call
}

// Why returns the decisions about the calls of an id, as the model gave it or as in
// Call.ID, or else of a tool; several if the id was used several times, in order.
func (r *Recording) Why(call string) ([]Decision, error) { return nil, nil }
