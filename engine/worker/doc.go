// Package worker runs threads on any number of machines that share a store. Clients put
// activations into the inboxes of threads; workers take threads in turn, and apply each
// activation exactly once, whatever crashes.
//
//	client, err := worker.NewClient(worker.ClientConfig{Journal: journal})
//	receipt, err := client.Submit(ctx, worker.Activation{
//		Thread: "t1", Agent: "helper", Messages: []inference.Message{inference.User("hello")},
//	})
//
//	w, err := worker.New(worker.Config{
//		Journal: journal,
//		Engine: func(c engine.Config) (*engine.Engine, error) {
//			c.Model = model
//			return engine.New(c)
//		},
//		Specs: func(ctx context.Context, agent string) (engine.AgentSpec, error) { ... },
//	})
//	err = w.Run(ctx)
//
// # How it works
//
// The inbox of thread T is a thread of the journal's own, InboxPrefix and T: a list of
// activations and of what became of them. Each submission appends one by compare-and-set,
// and with it, in the same commit, an effect in lane run/PRIORITY/TENANT. That is a
// wake-up and nothing else: it makes a worker look.
//
// A worker that looks opens T and compares the inbox with the Position that T's own state
// holds. It commits the new position together with the start of the run, or with the
// decisions (engine.Input.Updates), under the lease of T. So what an activation does and
// that it was done are one fact, and a worker that lost T can commit neither.
//
// When the run has ended or waits for people, the worker writes the outcome into the
// inbox, which ends the wake-up, and goes elsewhere. A wake-up that a worker took comes
// again after Config.Claim; whoever gets it sees whether the run is under way (its lease
// is held), is over, or was left behind, and goes on with it then.
//
// # What is promised
//
//   - An activation whose Submit returned is applied once: its messages are in the thread
//     once, its run begins once and ends, its decisions count once.
//   - A run whose worker died is gone on with from its last commit when its lease has run
//     out. A tool call whose result was committed does not run again; one that was under
//     way is handled as engine.Recovery says.
//   - A run whose worker shuts down ends within Config.Grace, or is gone on with at once.
//   - One activation of a thread is at work at a time. Threads have turns: those of a
//     higher priority more of them, tenants of one priority alike, none for ever.
//   - A failed attempt is made again after a delay that doubles. After Config.MaxAttempts
//     the activation is given up: its wake-up is a dead letter of the store, the inbox says
//     why, and the thread's later activations go on. Client.Requeue submits it anew.
//
// That a model failed is no failed attempt but the end of a run, as anywhere else. Effects
// are delivered at least once, as engine.DeliverOutbox says, which workers call.
//
// # Clocks
//
// Nothing that is promised depends on a clock. Those of workers and store should agree to
// within a few seconds, or timers, leases and claims are early or late by as much.
package worker
