package recording

import (
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/state"
)

// detailed returns an event that was emitted with its values encoded.
func detailed(e engine.Event) engine.Event {
	switch e := e.(type) {
	case engine.RunStarted:
		e.Base = foundBase(e.Base)
		return e
	case engine.RunResumed:
		e.Base = foundBase(e.Base)
		return e
	case engine.Committed:
		if e.After != nil && e.Changes == nil {
			if d, err := state.DeltaOf(e.Before, e.After); err == nil {
				e.Changes = d.Entries
			}
		}
		e.Writes = encoded(e.Writes)
		return e
	case engine.Conflict:
		e.Lost = encoded(e.Lost)
		return e
	}
	return e
}

func foundBase(b engine.Base) engine.Base {
	if b.State != nil && b.Found == nil {
		if d, err := b.State.Export(); err == nil {
			b.Found = &d
		}
	}
	return b
}

func encoded(ws []engine.Write) []engine.Write {
	out := make([]engine.Write, len(ws))
	for i, w := range ws {
		if arg := w.Update.Arg(); arg != nil && w.Value == "" {
			w.Value, _ = inference.ToJSON(arg)
		}
		out[i] = w
	}
	return out
}
