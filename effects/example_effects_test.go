package effects_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/state"
)

// Audit is a kind of effect; real programs declare it next to the plugin that handles it.
var Audit = effects.NewSpec[AuditLine]("audit")

type AuditLine struct {
	Who  string `json:"who"`
	What string `json:"what"`
}

func auditHandlers() *effects.Handlers {
	h, err := effects.NewHandlers([]effects.Registered{{
		Plugin: "auditor",
		Handler: Audit.Handle(func(ctx context.Context, _ *state.Snapshot, l AuditLine) error {
			id, _ := effects.IDFrom(ctx)
			fmt.Println(id, l.Who, l.What)
			return nil
		}),
	}})
	if err != nil {
		panic(err)
	}
	return h
}

func Example() {
	d, err := effects.NewDispatcher(auditHandlers(), effects.Config{})
	if err != nil {
		panic(err)
	}
	e := Audit.New(AuditLine{Who: "ann", What: "approved the call"})
	if err := d.Check(e); err != nil { // before the commit
		panic(err)
	}
	outcomes := d.Deliver(context.Background(), []effects.Delivery{{ // after it
		ID: effects.ID{Run: "run-1", Revision: 7}, Effect: e, Owner: "approvals",
	}})
	fmt.Println(outcomes[0].Name, "by", outcomes[0].Handler, outcomes[0].Err)
	// Output:
	// run-1/7/0 ann approved the call
	// audit by auditor <nil>
}

func ExampleHandlers_Check() {
	typo := effects.NewSpec[string]("audits")
	err := auditHandlers().Check(typo.New("x"))
	fmt.Println(errors.Is(err, effects.ErrUnknownEffect))
	fmt.Println(err)
	// Output:
	// true
	// effects: no plugin handles effect "audits"; register Spec.Handle for it (did you mean "audit"?)
}

func ExampleNewHandlers() {
	_, err := effects.NewHandlers([]effects.Registered{
		{Plugin: "a", Handler: Audit.Handle(func(context.Context, *state.Snapshot, AuditLine) error { return nil })},
		{Plugin: "b", Handler: Audit.Handle(func(context.Context, *state.Snapshot, AuditLine) error { return nil })},
	})
	fmt.Println(err)
	// Output: effects: plugins "a" and "b" both handle effect "audit"; keep one handler
}

func ExampleTimeout() {
	slow := effects.NewSpec[int]("slow")
	h, _ := effects.NewHandlers([]effects.Registered{{
		Plugin: "p",
		Handler: slow.Handle(func(ctx context.Context, _ *state.Snapshot, _ int) error {
			<-ctx.Done()
			return ctx.Err()
		}, effects.Timeout(time.Millisecond)),
	}})
	d, _ := effects.NewDispatcher(h, effects.Config{})
	out := d.Deliver(context.Background(), []effects.Delivery{{ID: effects.ID{Run: "r", Revision: 1}, Effect: slow.New(1)}})
	fmt.Println(errors.Is(out[0].Err, effects.ErrTimeout))
	// Output: true
}

func ExampleDispatcher_Close() {
	d, _ := effects.NewDispatcher(auditHandlers(), effects.Config{
		Mode:   effects.Background,
		Report: func(o effects.Outcome) { fmt.Println("reported", o.ID, o.Err) },
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the grace limit
	defer cancel()
	d.Deliver(ctx, []effects.Delivery{{ID: effects.ID{Run: "r", Revision: 1}, Effect: Audit.New(AuditLine{"bob", "left"})}})
	fmt.Println(d.Close(ctx))
	// Output:
	// r/1/0 bob left
	// reported r/1/0 <nil>
	// <nil>
}

func ExampleHandlers_Restore() {
	h := auditHandlers()
	saved, _ := Audit.New(AuditLine{"ann", "paid"}).JSON() // kept in an outbox, with the id
	again, err := h.Restore("audit", saved)
	line, _ := Audit.Payload(again)
	fmt.Println(string(saved), line.Who, err)
	// Output: {"who":"ann","what":"paid"} ann <nil>
}

func ExampleParseID() {
	id, err := effects.ParseID("run-1/7/0")
	fmt.Println(id.Run, id.Revision, id.Index, err)
	// Output: run-1 7 0 <nil>
}
