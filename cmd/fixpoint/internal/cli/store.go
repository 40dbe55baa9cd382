package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/stores"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
)

// storeFlag adds the flag for a store that has to be there.
func storeFlag(c *cobra.Command, folder *string) {
	c.Flags().AddFlag(storeFlagOf(folder))
}

func storeFlagOf(name *string) *pflag.Flag {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	all.StringVar(name, "store", "", "the `store`, as given to run: "+stores.Forms)
	return all.Lookup("store")
}

// exactly accepts that many arguments, which are called so.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		want := strings.Join(names, " ")
		if want == "" {
			want = "no arguments"
		}
		return usageError{fmt.Errorf("%s takes %s, got %d arguments; see %s --help", c.Name(), want, len(args), c.CommandPath())}
	}
}

// withStore opens a store for as long as do runs.
func withStore(ctx context.Context, name string, open func(folder string) (*kept.Store, error), do func(*kept.Store) error) error {
	place, err := placeOf(name)
	if err != nil {
		return err
	}
	var store *kept.Store
	if place.Shared() {
		store, err = share(ctx, place)
	} else {
		store, err = open(place.Folder())
	}
	if err != nil {
		return storeFault(err)
	}
	return joined(do(store), store.Close())
}

// placeOf reads the value of --store.
func placeOf(name string) (stores.Place, error) {
	if name == "" {
		return stores.Place{}, usageError{errors.New("fixpoint: --store is missing; name what was given to run: " + stores.Forms)}
	}
	place, err := stores.Parse(name)
	if err != nil {
		return place, usageError{fmt.Errorf("fixpoint: --store: %w", err)}
	}
	return place, nil
}

// folderOf reads the value of --store where it has to be a folder; what for is for the
// error.
func folderOf(name, what string) (string, error) {
	place, err := placeOf(name)
	if err == nil && place.Shared() {
		err = usageError{fmt.Errorf("fixpoint: %s takes a store in a folder, not %s", what, place)}
	}
	return place.Folder(), err
}

// share opens a store that processes share.
func share(ctx context.Context, place stores.Place) (*kept.Store, error) {
	j, err := stores.Open(ctx, place)
	if err != nil {
		return nil, err
	}
	secrets, err := absolute(place.Secrets())
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return kept.Share(place.String(), j, secrets)
}

// storeFault turns what is wrong with how a store was asked into a fault of the
// arguments.
func storeFault(err error) error {
	for _, kind := range []error{kept.ErrNoStore, kept.ErrNoTicket, kept.ErrSeveral, kept.ErrTaken, engine.ErrNoRevision} {
		if errors.Is(err, kind) {
			return usageError{fmt.Errorf("fixpoint: %w", err)}
		}
	}
	return fmt.Errorf("fixpoint: %w", err)
}

// absolute is filepath.Abs that leaves "" as it is.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

// reopened returns the session that goes on with a thread as its record says.
func (f showFlags) reopened(store *kept.Store, t kept.Thread, stdio IO) (session, error) {
	rec := t.Record
	if t.Served() {
		return session{}, served(store.Name, t)
	}
	if !t.Kept() {
		return session{}, usageError{fmt.Errorf("fixpoint: thread %s was not started by \"fixpoint run\" or \"fixpoint chat\"; its own program has to go on with it", t.ID)}
	}
	choice, err := f.chosen(rec.Model, stdio)
	if err != nil {
		return session{}, err
	}
	a, err := loadAgent(rec.Spec, choice)
	if err != nil {
		return session{}, err
	}
	hooks, err := f.hookFiles()
	if err == nil && len(hooks) == 0 {
		hooks, err = recordedHooks(rec.Hooks)
	}
	if err != nil {
		return session{}, err
	}
	a = hooks.agent(a)
	a.startWith(rec.Agent)
	w, err := newWorkspace(rec.Dir, rec.Report, f.hidden(store.Folder, append(hooks, rec.Trace)...)...)
	return session{agent: a, workspace: w, hooks: hooks, store: store, thread: t.ID}, err
}

// questions returns what a run waits for, with the commands that answer.
func questions(folder string, th *engine.Thread, tickets []gate.Ticket) []terminal.Question {
	var all []terminal.Question
	for _, t := range tickets {
		c, _ := engine.ToolCalls.Get(th.Snapshot(), t.Call)
		all = append(all, question(folder, kept.Question{Ticket: t, Call: c.Call}))
	}
	return all
}

// question is an open question as it is shown.
func question(folder string, q kept.Question) terminal.Question {
	shown := terminal.Question{Ticket: q.Ticket, Call: q.Call, Command: answerCommand(folder, q.Ticket), Now: time.Now()}
	if terminal.TakesAnswers(q.Ticket) {
		shown.Other = strings.Join([]string{"fixpoint", "answer", quote(q.Ticket.ID), "ANSWER", "--store", quote(folder)}, " ")
	}
	return shown
}

// answerCommand is what to type to approve or answer.
func answerCommand(folder string, t gate.Ticket) string {
	words := []string{"fixpoint", "answer", quote(t.ID)}
	switch t.Kind {
	case gate.Confirm:
		words[1] = "approve"
	case gate.Choice:
		words = append(words, "CHOICE")
	case gate.MultiChoice:
		words = append(words, "CHOICE...")
	case gate.Form:
		words = append(words, "JSON")
	case gate.Text:
		words = append(words, "TEXT")
	case gate.Secret: // it is asked for
	}
	return strings.Join(append(words, "--store", quote(folder)), " ")
}

// resumeCommand is what to type to go on with a thread.
func resumeCommand(folder, thread string) string {
	return strings.Join([]string{"fixpoint", "resume", quote(thread), "--store", quote(folder)}, " ")
}

// served says what to do with a thread that workers go on with.
func served(store string, t kept.Thread) error {
	return usageError{fmt.Errorf("fixpoint: thread %s is for workers to go on with, which \"fixpoint worker\" starts; give it more to do with: %s", t.ID, submitCommand(store, t.ID))}
}

// submitCommand is what to type to give a thread to workers.
func submitCommand(store, thread string) string {
	return strings.Join([]string{"fixpoint", "submit", quote(thread), "PROMPT", "--store", quote(store)}, " ")
}

// quote makes one word of a text for a shell.
func quote(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(`/._-:\@,`, r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// remember tells the view of the calls of the step that a run stands in.
func remember(th *engine.Thread, show screenful) {
	for _, c := range engine.ToolCalls.All(th.Snapshot()) {
		show.view.Remember(c.Call)
	}
}

// onThread opens the store and finds how a thread of it stands.
func onThread(ctx context.Context, folder, id string, do func(*kept.Store, kept.Thread) error) error {
	return withStore(ctx, folder, kept.Open, func(store *kept.Store) error {
		t, err := store.Thread(ctx, id)
		if err != nil {
			return storeFault(err)
		}
		if !t.Kept() && !t.Inbox && t.Lifecycle.Run == "" {
			return usageError{fmt.Errorf("fixpoint: there is no thread %q in %s; \"fixpoint threads\" lists them", id, store.Name)}
		}
		return do(store, t)
	})
}
