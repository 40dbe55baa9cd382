package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/store"
)

// submitFlags are the flags of the submit command.
type submitFlags struct {
	store, agent, key, tenant, priority, notBefore, reason string
	decide                                                 []string
	cancel, follow, wait, jsonl, quiet, verbose            bool
}

func newSubmit(stdio IO) *cobra.Command {
	var f submitFlags
	c := &cobra.Command{
		Use:   "submit THREAD [PROMPT|-]",
		Short: "Give a thread to the workers of a store: a prompt, decisions, or a cancel",
		Long: "Give a thread something to do: a prompt for an agent, answers to what its run asks, or a\n" +
			"cancel. It is kept in the thread's inbox, and a worker that shares the store does it,\n" +
			"once: see \"fixpoint worker\". What a thread is given is done in that order, but decisions\n" +
			"and cancels pass prompts that wait.\n\n" +
			"A PROMPT of - is read from standard input. A thread that is not there is made; one that\n" +
			"is there goes on with its agent unless --agent names another.\n\n" +
			"--decide TICKET=VALUE answers a question, as answer does: yes, \"no REASON\", or the value\n" +
			"that the kind of the question takes. All that are named count, or none. approve, deny\n" +
			"and answer do the same for one ticket, and ask for secrets.\n\n" +
			"--wait waits until it is done, which is so too when the run waits for an answer. --follow\n" +
			"shows what the run does meanwhile, on whichever machine; without anything to submit it\n" +
			"shows what the thread's runs do until Ctrl-C. Neither can be had with a store in a folder,\n" +
			"which no worker can open as long as this command has it open.\n\n" +
			"With a --key, what is submitted again is known as a repeat and is not done again.\n\n" +
			"Exit code: 0 when it is kept, or with --wait or --follow when the run came to its end; 1\n" +
			"when that failed; 2 for wrong arguments, or when it was refused; 3 when the run waits for\n" +
			"an answer; 130 when the run was cancelled, or the waiting was: then it stays submitted.",
		Example: "  fixpoint submit t1 'Survey the directory.' --agent steward --store postgres://app@db/app --follow\n" +
			"  fixpoint submit t1 --decide report=yes --store postgres://app@db/app --wait\n" +
			"  fixpoint submit t1 --cancel --reason 'not needed any more' --store postgres://app@db/app\n" +
			"  fixpoint submit nightly - --agent steward --key 2030-01-02 --not-before 8h --store bolt:runs < prompt",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usageError{fmt.Errorf("%s takes THREAD and perhaps a PROMPT, which is quoted, got %d arguments; see %s --help", c.Name(), len(args), c.CommandPath())}
			}
			return nil
		},
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return verb(func(ctx context.Context, thread string) error {
			if len(args) == 2 {
				return f.submit(ctx, thread, &args[1], stdio)
			}
			return f.submit(ctx, thread, nil, stdio)
		})(c, args)
	}
	fl := c.Flags()
	storeFlag(c, &f.store)
	fl.StringVar(&f.agent, "agent", "", "the `id` of the agent to run (default: the thread's)")
	fl.StringArrayVar(&f.decide, "decide", nil, "`TICKET=VALUE`: answer this ticket, named by its id or its call; may be repeated")
	fl.BoolVar(&f.cancel, "cancel", false, "cancel the thread's run, and what was submitted before and is not put off")
	fl.StringVar(&f.reason, "reason", "", "the `text` that the run is told with a decision or a cancel")
	fl.StringVar(&f.key, "key", "", "what makes a repeat known as one")
	fl.StringVar(&f.tenant, "tenant", "", "whom it is for; tenants have turns with each other")
	fl.StringVar(&f.priority, "priority", "normal", "high, normal or low")
	fl.StringVar(&f.notBefore, "not-before", "", "not before this `time`, such as 2030-01-02T15:04:05Z, or duration from now, such as 90m")
	fl.BoolVar(&f.wait, "wait", false, "wait until it is done")
	fl.BoolVar(&f.follow, "follow", false, "show what happens, and wait until it is done")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "show questions and the outcome only")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "show every hook, commit and duration")
	fl.BoolVar(&f.jsonl, "json", false, "print JSON lines, and nothing else")
	c.MarkFlagsMutuallyExclusive("quiet", "verbose", "json")
	c.MarkFlagsMutuallyExclusive("decide", "cancel")
	return c
}

// activation returns what the flags say, but the agent and the decisions, or nil if it is
// only to be shown what happens.
func (f submitFlags) activation(thread string, prompt *string, stdio IO) (*worker.Activation, error) {
	a := &worker.Activation{
		Thread: thread, Key: f.key, Tenant: f.tenant, Priority: worker.Priority(f.priority), Kind: worker.KindInput,
	}
	var err error
	if a.NotBefore, err = moment(f.notBefore, stdio.now()); err != nil {
		return nil, err
	}
	switch {
	case prompt != nil && (f.cancel || len(f.decide) > 0):
		return nil, usageError{errors.New("fixpoint: a prompt comes alone, without --decide and --cancel")}
	case f.cancel:
		a.Kind, a.Reason = worker.KindCancel, f.reason
		if a.Priority == worker.Normal {
			a.Priority = worker.High
		}
	case len(f.decide) > 0:
		a.Kind = worker.KindDecide
	case prompt == nil && f.follow:
		return nil, nil
	case prompt == nil:
		return nil, usageError{errors.New("fixpoint: there is nothing to submit: give a PROMPT, --decide or --cancel")}
	case f.reason != "":
		return nil, usageError{errors.New("fixpoint: --reason goes with --decide or --cancel")}
	default:
		text, err := promptText(*prompt, stdio)
		if err != nil {
			return nil, err
		}
		a.Messages, a.Mode, a.Adapter = engine.Prompt(text).Messages, "interactive", "cli"
	}
	if a.Kind != worker.KindInput && f.agent != "" {
		return nil, usageError{errors.New("fixpoint: --agent goes with a prompt")}
	}
	return a, nil
}

// promptText returns a prompt, which - has to be read.
func promptText(text string, stdio IO) (string, error) {
	if text == "-" {
		if stdio.In == nil {
			stdio.In = strings.NewReader("")
		}
		raw, err := io.ReadAll(io.LimitReader(stdio.In, maxPiped+1))
		if err != nil {
			return "", fmt.Errorf("fixpoint: the prompt could not be read: %w", err)
		}
		if len(raw) > maxPiped {
			return "", usageError{fmt.Errorf("fixpoint: a prompt may have %d bytes", maxPiped)}
		}
		text = string(raw)
	}
	if strings.TrimSpace(text) == "" {
		return "", usageError{errors.New("fixpoint: the prompt is empty")}
	}
	return text, nil
}

// moment reads the value of --not-before.
func moment(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(d), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usageError{fmt.Errorf("fixpoint: --not-before %q: write a time such as 2030-01-02T15:04:05Z, or a duration such as 90m", text)}
}

func (s IO) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

func (f submitFlags) submit(ctx context.Context, thread string, prompt *string, stdio IO) error {
	if err := kept.CheckThreadID(thread); err != nil {
		return usageError{fmt.Errorf("fixpoint: %w", err)}
	}
	place, err := placeOf(f.store)
	if err != nil {
		return err
	}
	if !place.Shared() && (f.follow || f.wait) {
		return usageError{errors.New("fixpoint: --wait and --follow need a store on a server: no worker can open a folder as long as this command has it open; submit first, and then start \"fixpoint worker\"")}
	}
	a, err := f.activation(thread, prompt, stdio)
	if err != nil {
		return err
	}
	return withStore(ctx, f.store, kept.Create, func(store *kept.Store) error {
		s, err := newSubmission(f, store, stdio)
		if err != nil {
			return err
		}
		if a != nil {
			if err := f.complete(ctx, store, a); err != nil {
				return err
			}
		}
		return s.run(ctx, thread, a)
	})
}

// complete adds what the store knows: the agent of the thread, and what tickets ask.
func (f submitFlags) complete(ctx context.Context, store *kept.Store, a *worker.Activation) error {
	t, err := store.Thread(ctx, a.Thread)
	if err != nil {
		return storeFault(err)
	}
	if !t.Served() && (t.Interrupted() || len(t.Open) > 0) {
		return usageError{fmt.Errorf("fixpoint: thread %s has a run of \"fixpoint run\" that has not ended; go on with it first, or use another thread", t.ID)}
	}
	switch a.Kind {
	case worker.KindInput:
		if a.Agent = cmp.Or(f.agent, t.Agent); a.Agent == "" {
			return usageError{fmt.Errorf("fixpoint: thread %s is new, so --agent has to name the agent that is to run", t.ID)}
		}
	case worker.KindDecide:
		for _, text := range f.decide {
			d, err := decisionOf(ctx, t, text, f.reason)
			if err != nil {
				return err
			}
			a.Decisions = append(a.Decisions, d)
		}
	}
	return nil
}

// decisionOf reads a value of --decide.
func decisionOf(ctx context.Context, t kept.Thread, text, reason string) (engine.Decision, error) {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" {
		return engine.Decision{}, usageError{fmt.Errorf("fixpoint: --decide %q: write TICKET=VALUE", text)}
	}
	var meant []kept.Question
	for _, q := range t.Open {
		if q.Ticket.ID == name || q.Ticket.Call == name {
			meant = append(meant, q)
		}
	}
	if len(meant) != 1 {
		return engine.Decision{}, usageError{fmt.Errorf("fixpoint: %q stands for %d open tickets of thread %s; \"fixpoint pending\" lists them", name, len(meant), t.ID)}
	}
	q := meant[0]
	answer, plain := yesOrNo(q.Ticket, value)
	if !plain {
		var err error
		if answer, err = given(ctx, q, []string{value}, IO{}); err != nil {
			return engine.Decision{}, err
		}
	}
	answer.Ticket, answer.Reason = q.Ticket.ID, cmp.Or(reason, answer.Reason)
	return engine.Decision{ID: "decide " + text, Answer: answer}, nil
}

// yesOrNo reads the answer to a question that takes no more than that.
func yesOrNo(t gate.Ticket, value string) (phase.Answer, bool) {
	if t.Kind != gate.Confirm || terminal.TakesAnswers(t) {
		return phase.Answer{}, false
	}
	word, reason, _ := strings.Cut(value, " ")
	switch word {
	case "yes", "y":
		return phase.Answer{Approved: true}, reason == ""
	case "no", "n":
		return phase.Answer{Reason: strings.TrimSpace(reason)}, true
	}
	return phase.Answer{}, false
}

// submitted gives an activation to workers. Where nobody knows whether it was kept it is
// tried again, which does no harm because it has a key.
func submitted(ctx context.Context, c *worker.Client, a worker.Activation) (worker.Receipt, error) {
	a.Key = cmp.Or(a.Key, "cli/"+rand.Text())
	const tries = 5
	for n := 1; ; n++ {
		r, err := c.Submit(ctx, a)
		switch {
		case errors.Is(err, store.ErrUnknownOutcome) && n < tries && ctx.Err() == nil:
			continue
		case errors.Is(err, worker.ErrActivation), errors.Is(err, worker.ErrSecret):
			return r, usageError{fmt.Errorf("fixpoint: %w", err)}
		case err != nil:
			return r, fmt.Errorf("fixpoint: %w", err)
		}
		return r, nil
	}
}
