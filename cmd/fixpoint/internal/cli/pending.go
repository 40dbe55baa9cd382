package cli

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
)

// pendingTicket is an open ticket as "pending --json" prints it.
type pendingTicket struct {
	Ticket   string          `json:"ticket"`
	Thread   string          `json:"thread"`
	Run      string          `json:"run"`
	Agent    string          `json:"agent"`
	Kind     gate.TicketKind `json:"kind"`
	Plugin   string          `json:"plugin"`
	Message  string          `json:"message"`
	Call     string          `json:"call"`
	Tool     string          `json:"tool"`
	Args     inference.JSON  `json:"args,omitzero"`
	Choices  inference.JSON  `json:"choices,omitzero"`  // the value is taken from
	Schema   inference.JSON  `json:"schema,omitzero"`   // of the value
	Mode     gate.ResumeMode `json:"mode,omitzero"`     // what an approving answer does
	Default  gate.Default    `json:"default,omitzero"`  // when nobody answers
	Fallback inference.JSON  `json:"fallback,omitzero"` // the value of that
	Until    time.Time       `json:"until,omitzero"`
}

func newPending(stdio IO) *cobra.Command {
	var folder string
	var asJSON bool
	c := &cobra.Command{
		Use:   "pending",
		Short: "List the questions that runs in a store wait for",
		Long: "List the questions that runs in a store wait for: what is asked, the kind of answer,\n" +
			"the choices or the schema of its value, what counts when nobody answers, and until when\n" +
			"an answer is taken.",
		Example: "  fixpoint pending --store runs",
		Args:    exactly(),
		RunE: verb(func(ctx context.Context, _ string) error {
			return withStore(ctx, folder, kept.Open, func(store *kept.Store) error {
				threads, err := store.Threads(ctx)
				if err != nil {
					return storeFault(err)
				}
				if asJSON {
					return pendingJSON(stdio.Out, threads)
				}
				return pendingText(stdio, store.Name, threads)
			})
		}),
	}
	storeFlag(c, &folder)
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON, with whole arguments")
	return c
}

func pendingJSON(w io.Writer, threads []kept.Thread) error {
	all := []pendingTicket{}
	for _, t := range threads {
		for _, q := range t.Open {
			all = append(all, pendingTicket{
				Ticket: q.Ticket.ID, Thread: t.ID, Run: t.Lifecycle.Run, Agent: t.Record.Agent, Kind: q.Ticket.Kind,
				Plugin: q.Ticket.Plugin, Message: q.Ticket.Message, Call: q.Ticket.Call, Tool: q.Call.Name, Args: q.Call.Args,
				Choices: q.Ticket.Choices, Schema: q.Ticket.Schema, Mode: q.Ticket.Mode, Default: q.Ticket.Default,
				Fallback: q.Ticket.Fallback, Until: q.Ticket.Until,
			})
		}
	}
	return writeJSON(w, all)
}

// writeJSON writes a value for programs, and for people who look at it.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func pendingText(stdio IO, folder string, threads []kept.Thread) error {
	p := terminal.NewPrinter(screen(stdio, stdio.Out))
	found := false
	for _, t := range threads {
		for _, q := range t.Open {
			if found {
				p.Line("", "")
			}
			found = true
			p.Line("thread", t.ID)
			p.Question(question(folder, q))
		}
	}
	if !found {
		p.Line("pending", "nothing: no run waits for an answer")
	}
	return p.Err()
}
