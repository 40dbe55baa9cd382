package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/store"
)

// queueFinds are the faults of queue, notices, several processes and broken connections.
var queueFinds = map[string]string{
	"lanes out of order":               "queue/lanes",
	"lanes without a prefix":           "queue/lanes",
	"lanes of the dead":                "queue/lanes",
	"lanes that are due":               "queue/lanes",
	"lanes folded":                     "queue/lanes_with_odd_names",
	"lanes by pattern":                 "queue/lanes_with_odd_names",
	"claimed is waiting":               "queue/depth",
	"counts no dead":                   "queue/depth",
	"depth with what is below":         "queue/depth",
	"due since it was claimed":         "queue/since_when_the_oldest_is_due",
	"oldest is the newest":             "queue/since_when_the_oldest_is_due",
	"dead out of order":                "queue/dead_effects",
	"dead without a limit":             "queue/dead_effects",
	"forgets why":                      "queue/dead_effects",
	"dead without attempts":            "queue/dead_effects",
	"requeues nothing":                 "queue/requeue",
	"requeues what is not there":       "queue/requeue",
	"requeues for many":                "queue/one_that_is_dead_is_requeued_by_one_of_many",
	"postpones to now":                 "model/random_calls",
	"notices to one":                   "notices/all_who_listen_hear_it",
	"notices of all topics":            "notices/all_who_listen_hear_it",
	"notices keep the caller's bytes":  "notices/all_who_listen_hear_it",
	"notices shared":                   "notices/all_who_listen_hear_it",
	"notices twice":                    "notices/each_once,_in_the_order_they_were_sent",
	"notices out of order":             "notices/each_once,_in_the_order_they_were_sent",
	"notices without a limit":          "notices/up_to_the_largest",
	"notices cut":                      "notices/up_to_the_largest",
	"topics folded":                    "notices/topics_with_odd_names",
	"topics cut":                       "notices/topics_with_odd_names",
	"listens for ever":                 "notices/the_end_of_a_listener",
	"a goroutine a listener":           "notices/listeners_leave_nothing_behind",
	"waits for listeners":              "notices/a_listener_that_is_slow_holds_up_nobody",
	"loads what is old":                "processes/what_one_acknowledges_another_loads",
	"knows leases of its process only": "processes/a_lease_is_taken_over",
	"claims for its process only":      "processes/an_effect_goes_to_one",
	"notices stay in the process":      "processes/notices",
	"denies what it did":               "connections_to_cut/every_commit_lands_once",
	"delivers again what is settled":   "connections_to_cut/every_effect_is_delivered,_and_none_again_that_is_settled",
	"stops listening":                  "connections_to_cut/who_listens_goes_on_listening",
}

var errCut = errors.New("the connection was cut")

// cut makes the next calls fail.
func (f *faulty) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cuts = 5
	if f.fault == "stops listening" {
		for _, end := range f.ends {
			end()
		}
		f.ends = nil
	}
}

// broken returns the error of a call whose connection is cut, which makes the call or
// does not, and says so or does not know.
func (f *faulty) broken(call func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cuts == 0 {
		return nil
	}
	f.cuts--
	switch f.cuts % 3 {
	case 0:
		return errCut
	case 1:
		return store.ErrUnknownOutcome
	}
	if err := call(); err != nil {
		return err
	}
	if f.fault == "denies what it did" {
		return errCut
	}
	return store.ErrUnknownOutcome
}

func (f *faulty) Caps() store.Caps {
	caps := f.Store.Caps()
	caps.MultiProcess = true
	return caps
}

func (f *faulty) Lanes(ctx context.Context, prefix string) ([]string, error) {
	asked := prefix
	switch f.fault {
	case "lanes without a prefix":
		asked = ""
	case "lanes by pattern":
		if strings.Contains(prefix, "*") {
			asked = ""
		}
	}
	names, err := f.Store.Lanes(ctx, asked)
	switch f.fault {
	case "lanes out of order":
		slices.Reverse(names)
	case "lanes of the dead":
		for _, lane := range []string{"mail", "run/9/b"} {
			if d, _ := f.Store.Depth(ctx, lane); d.Dead > 0 && strings.HasPrefix(lane, prefix) {
				names = append(names, lane)
			}
		}
		slices.Sort(names)
	case "lanes that are due":
		names = slices.DeleteFunc(names, func(lane string) bool {
			d, _ := f.Store.Depth(ctx, lane)
			return d.Due == 0
		})
	case "lanes folded":
		for i := range names {
			names[i] = strings.ToLower(names[i])
		}
	}
	return names, err
}

func (f *faulty) Depth(ctx context.Context, lane string) (store.Depth, error) {
	d, err := f.Store.Depth(ctx, lane)
	switch f.fault {
	case "claimed is waiting":
		d.Waiting, d.Claimed = d.Waiting+d.Claimed, 0
	case "counts no dead":
		d.Dead = 0
	case "depth with what is below":
		names, _ := f.Store.Lanes(ctx, lane+"/")
		for _, name := range names {
			more, _ := f.Store.Depth(ctx, name)
			d.Due += more.Due
		}
	case "due since it was claimed":
		if d.Due > 0 {
			d.Oldest = f.now()
		}
	case "oldest is the newest":
		if d.Due > 1 {
			d.Oldest = d.Oldest.Add(time.Second)
		}
	}
	return d, err
}

func (f *faulty) Dead(ctx context.Context, lane string, limit int) ([]store.DeadEffect, error) {
	if f.fault == "dead without a limit" {
		limit = 1000
	}
	dead, err := f.Store.Dead(ctx, lane, limit)
	switch f.fault {
	case "dead out of order":
		slices.Reverse(dead)
	case "dead without attempts":
		for i := range dead {
			dead[i].Attempts = 0
		}
	}
	return dead, err
}

func (f *faulty) Requeue(ctx context.Context, ref store.EffectRef) error {
	if f.fault == "requeues nothing" {
		return nil
	}
	err := f.Store.Requeue(ctx, ref)
	if f.fault == "requeues what is not there" || f.fault == "requeues for many" && ref.Thread == "t" {
		return nil
	}
	return err
}

func (f *faulty) Notify(ctx context.Context, topic string, data []byte) error {
	if err := f.broken(func() error { return nil }); err != nil {
		return err
	}
	f.mu.Lock()
	last := f.last
	f.last = data
	f.mu.Unlock()
	switch f.fault {
	case "notices stay in the process":
		if f.child {
			return nil
		}
	case "notices of all topics":
		topic = "any"
	case "topics folded":
		topic = strings.ToLower(topic)
	case "topics cut":
		topic = topic[:min(len(topic), 63)]
	case "notices keep the caller's bytes":
		if len(last) > 0 {
			data = last
		}
	case "notices without a limit":
		data = data[:min(len(data), store.MaxNotice)]
	case "notices cut":
		data = data[:min(len(data), 8000)]
	case "notices twice":
		_ = f.Store.Notify(ctx, topic, data)
	case "notices out of order":
		if len(last) == 2 {
			_ = f.Store.Notify(ctx, topic, data)
			data = last
		}
	case "waits for listeners":
		for !f.room() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	return f.Store.Notify(ctx, topic, data)
}

// room stands for a notifier that waits for a listener with much before it.
func (f *faulty) room() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cuts--
	return f.cuts > -1000
}

func (f *faulty) Listen(ctx context.Context, topic string) (<-chan []byte, error) {
	switch f.fault {
	case "notices of all topics":
		topic = "any"
	case "topics folded":
		topic = strings.ToLower(topic)
	case "topics cut":
		topic = topic[:min(len(topic), 63)]
	case "listens for ever":
		ctx = context.WithoutCancel(ctx)
	case "a goroutine a listener":
		go func() {
			<-ctx.Done()
			select {}
		}()
	case "stops listening":
		of, end := context.WithCancel(ctx)
		f.mu.Lock()
		f.ends = append(f.ends, end)
		f.mu.Unlock()
		ctx = of
	case "notices to one":
		f.mu.Lock()
		defer f.mu.Unlock()
		f.seen[[16]byte{1}]++
		topic += fmt.Sprint(f.seen[[16]byte{1}])
	case "notices shared":
		heard, err := f.Store.Listen(ctx, topic)
		out := make(chan []byte, 1000)
		go func() {
			defer close(out)
			for data := range heard {
				f.mu.Lock()
				if kept := f.images[string(data)].Snapshot; kept != nil {
					data = kept
				}
				f.images[string(data)] = store.Image{Snapshot: data}
				f.mu.Unlock()
				out <- data
			}
		}()
		return out, err
	}
	return f.Store.Listen(ctx, topic)
}
