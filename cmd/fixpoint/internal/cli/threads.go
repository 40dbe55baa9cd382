package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/kept"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/listing"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/engine/worker"
	"github.com/ddd26017/fixpoint/inference"
)

func newThreads(stdio IO) *cobra.Command {
	var name string
	var dead, lanes bool
	c := &cobra.Command{
		Use:   "threads",
		Short: "List the threads of a store: status, step and agent",
		Long: "List the threads of a store, one line each: id, status, step, agent, and what there is\n" +
			"to say of it. A status of \"running\" means that the process of the run ended before\n" +
			"the run did, or that it is a fork that has not gone on yet; of a thread that is for\n" +
			"workers it means that one has it, or will go on with it. Of those it says too what\n" +
			"was submitted and waits for its turn.\n\n" +
			"--dead lists what workers gave up, which \"threads requeue\" submits again, and --lanes\n" +
			"how much waits for workers: due, put off, taken, and given up.",
		Example: "  fixpoint threads --store runs\n" +
			"  fixpoint threads --dead --store postgres://app@db/app\n" +
			"  fixpoint threads requeue t1 7 --store postgres://app@db/app",
		Args: exactly(),
		RunE: verb(func(ctx context.Context, _ string) error {
			return withStore(ctx, name, kept.Open, func(store *kept.Store) error {
				if lanes {
					return listLanes(ctx, store, stdio)
				}
				all, err := store.Threads(ctx)
				if err != nil {
					return storeFault(err)
				}
				client, err := clientOf(store, stdio)
				if err != nil {
					return err
				}
				notes := map[string]string{}
				for _, t := range all {
					if !t.Inbox {
						continue
					}
					s, err := client.Status(ctx, t.ID)
					if err != nil {
						return storeFault(err)
					}
					if dead {
						if err := listDead(stdio.Out, s.Dead); err != nil {
							return err
						}
					}
					notes[t.ID] = queued(s, stdio.now())
				}
				if dead {
					return nil
				}
				return listing.Threads(stdio.Out, all, notes)
			})
		}),
	}
	c.PersistentFlags().AddFlag(storeFlagOf(&name))
	c.Flags().BoolVar(&dead, "dead", false, "list what workers gave up")
	c.Flags().BoolVar(&lanes, "lanes", false, "list how much waits for workers")
	c.MarkFlagsMutuallyExclusive("dead", "lanes")
	c.AddCommand(newRequeue(stdio, &name))
	return c
}

func newRequeue(stdio IO, name *string) *cobra.Command {
	c := &cobra.Command{
		Use:   "requeue THREAD ACTIVATION",
		Short: "Submit again what workers gave up",
		Long: "Submit again an activation of a thread that workers gave up, behind what waits there.\n" +
			"threads --dead lists them.",
		Example: "  fixpoint threads requeue t1 7 --store postgres://app@db/app",
		Args:    exactly("THREAD", "ACTIVATION"),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return verb(func(ctx context.Context, thread string) error {
			seq, err := strconv.ParseUint(args[1], 10, 64)
			if err != nil {
				return usageError{fmt.Errorf("fixpoint: %q is no number of an activation; \"fixpoint threads --dead\" lists them", args[1])}
			}
			return withStore(ctx, *name, kept.Open, func(store *kept.Store) error {
				client, err := clientOf(store, stdio)
				if err != nil {
					return err
				}
				r, err := client.Requeue(ctx, thread, seq)
				if errors.Is(err, worker.ErrNotDead) {
					return usageError{fmt.Errorf("fixpoint: %w; \"fixpoint threads --dead\" lists those that were", err)}
				}
				if err != nil {
					return storeFault(err)
				}
				_, err = fmt.Fprintf(stdio.Out, "%s: activation %d is submitted again, as activation %d\n", thread, seq, r.Seq)
				return err
			})
		})(c, args)
	}
	return c
}

func clientOf(store *kept.Store, stdio IO) (*worker.Client, error) {
	return worker.NewClient(worker.ClientConfig{Journal: store.Journal, Vault: store.Vault, Now: stdio.Now})
}

// queued says what waits in a thread's inbox; "" for nothing.
func queued(s worker.Status, now time.Time) string {
	var parts []string
	waiting, later, at := 0, 0, time.Time{}
	for _, i := range s.Pending {
		switch {
		case i.Run == s.Lifecycle.Run: // it is at work
		case i.Attempts > 0:
			parts = append(parts, fmt.Sprintf("activation %d failed %d times, next try %s: %s", i.Seq, i.Attempts, localTime(i.RetryAt), terminal.Clean(i.Error, 120)))
		case i.Activation.NotBefore.After(now):
			if later++; at.IsZero() || i.Activation.NotBefore.Before(at) {
				at = i.Activation.NotBefore
			}
		default:
			waiting++
		}
	}
	if waiting > 0 {
		parts = append(parts, fmt.Sprintf("%d in the queue", waiting))
	}
	if later > 0 {
		parts = append(parts, fmt.Sprintf("%d put off until %s", later, localTime(at)))
	}
	if n := len(s.Dead); n > 0 {
		parts = append(parts, fmt.Sprintf("%d given up", n))
	}
	return strings.Join(parts, "; ")
}

func localTime(t time.Time) string { return t.Local().Format(time.DateTime) }

// listDead writes activations that were given up, one line each.
func listDead(to io.Writer, all []worker.Item) error {
	for _, i := range all {
		_, err := fmt.Fprintf(to, "%s  activation %d  %s  %s  %d attempts  %s  %s\n", i.Thread, i.Seq, localTime(i.Time),
			i.Activation.Kind, i.Attempts, terminal.Clean(aboutOf(i.Activation), 60), terminal.Clean(i.Error, 200))
		if err != nil {
			return err
		}
	}
	return nil
}

// aboutOf says in short what an activation does.
func aboutOf(a worker.Activation) string {
	for _, m := range a.Messages {
		if m.Role == inference.RoleUser {
			return fmt.Sprintf("%s: %q", a.Agent, m.Text)
		}
	}
	if len(a.Decisions) > 0 {
		return a.Decisions[0].Answer.Ticket
	}
	return "-"
}

// listLanes writes how much waits for workers.
func listLanes(ctx context.Context, store *kept.Store, stdio IO) error {
	client, err := clientOf(store, stdio)
	if err != nil {
		return err
	}
	all, err := client.Lanes(ctx)
	if err != nil {
		return storeFault(err)
	}
	w := tabwriter.NewWriter(stdio.Out, 0, 0, 2, ' ', 0)
	for _, l := range all {
		age := "-"
		if !l.Oldest.IsZero() {
			age = max(stdio.now().Sub(l.Oldest), 0).Round(time.Second).String()
		}
		tenant := l.Tenant
		if tenant == "" {
			tenant = "-"
		}
		_, err := fmt.Fprintf(w, "%s\t%s\t%d due\t%d put off\t%d taken\t%d given up\toldest %s\n", l.Priority, terminal.Clean(tenant, 60), l.Due, l.Waiting, l.Claimed, l.Dead, age)
		if err != nil {
			return err
		}
	}
	return w.Flush()
}
