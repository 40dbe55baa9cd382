package serve

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/state"
)

// RunRecord is what is kept of a run in its thread, so that another process knows it.
type RunRecord struct {
	Run     string         `json:"run"`              // the engine's id
	Agent   string         `json:"agent"`            // that it started with
	Digest  string         `json:"digest"`           // of what was asked for
	Outcome inference.JSON `json:"outcome,omitzero"` // what was told of it when the next run began
}

// Runs holds the runs of a thread by their number, from 1. A run's record is written
// before it starts.
var Runs = state.NewTable[uint64]("serve.runs", state.Options[RunRecord]{Scope: state.ScopeThread})

// Keys holds the numbers of the runs that were started with an idempotency key.
var Keys = state.NewTable[string]("serve.keys", state.Options[uint64]{Scope: state.ScopeThread})

// newest returns the number of the thread's last run, 0 if there is none.
func newest(snap *state.Snapshot) uint64 { return uint64(Runs.Len(snap)) }

// runID makes the id of a thread's run. The number finds its record; what follows it
// makes the id another one when a thread was deleted and its id is used again.
func runID(thread string, number uint64, unique string) string {
	return fmt.Sprintf("%s.%d-%s", thread, number, unique)
}

// ofRun takes a run's id apart.
func ofRun(id string) (thread string, number uint64, ok bool) {
	dot := strings.LastIndexByte(id, '.')
	if dot < 1 {
		return "", 0, false
	}
	digits, _, found := strings.Cut(id[dot+1:], "-")
	number, err := strconv.ParseUint(digits, 10, 64)
	return id[:dot], number, found && err == nil && number > 0
}
