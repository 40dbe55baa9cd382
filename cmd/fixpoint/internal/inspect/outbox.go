package inspect

import (
	"context"
	"time"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store"
)

// effectLane is where the engine puts effects that have to be delivered.
const effectLane = "effects"

// mostEffects is how many effects of an outbox are shown.
const mostEffects = 1000

// owed is an effect that was committed and is not delivered.
type owed struct {
	thread string
	event  engine.EffectFinished
}

// outbox lists the effects in the outbox of a copy of a store. It claims them, which in
// the store itself would keep them from who delivers them.
func outbox(ctx context.Context, from *kept.Store) ([]owed, error) {
	var all []owed
	add := func(thread string, body []byte, fault string) {
		var parcel struct {
			ID     effects.ID `json:"id"`
			Effect string     `json:"effect"`
			Owner  string     `json:"owner"`
		}
		if unpack(body, &parcel) != nil {
			return // of another version; the engine says so when it delivers it
		}
		all = append(all, owed{thread, engine.EffectFinished{
			Header: engine.Header{Run: parcel.ID.Run, Thread: thread, Revision: parcel.ID.Revision},
			ID:     parcel.ID, Effect: parcel.Effect, Plugin: parcel.Owner, Error: fault,
		}})
	}
	box, ok := from.Journal.(engine.Outbox)
	if !ok {
		return nil, nil
	}
	claims, err := box.Claim(ctx, effectLane, "inspect", mostEffects, time.Minute)
	for _, c := range claims {
		add(c.Ref.Thread, c.Effect.Body, "not delivered yet; it is in the outbox, and the next run in this store delivers it")
	}
	if queue, ok := from.Journal.(store.Queue); ok && err == nil {
		var gone []store.DeadEffect
		gone, err = queue.Dead(ctx, effectLane, mostEffects)
		for _, d := range gone {
			add(d.Ref.Thread, d.Effect.Body, "given up: "+d.Error)
		}
	}
	return all, err
}
