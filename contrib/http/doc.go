// Package serve serves the runs of an engine over HTTP: clients start runs, follow their
// events, answer what they ask and cancel them. It also speaks AG-UI, so that an existing
// front end can sit on top. It needs nothing but the standard library.
//
//	s, err := serve.New(engine.Config{Agents: agents, Journal: journal, ...}, serve.Options{
//		Authorize: func(r *http.Request) (serve.Principal, error) { ... },
//	})
//	web := &http.Server{Addr: addr, Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
//	go web.ListenAndServe()
//	...
//	err = errors.Join(s.Shutdown(ctx), web.Shutdown(ctx))
//
// Give the HTTP server a ReadHeaderTimeout, an IdleTimeout and, against slow bodies, a
// ReadTimeout. A WriteTimeout would end streams; what is written to them has a limit of
// its own (Limits.WriteWithin). Wrap the handler for what else a site needs: TLS, CORS,
// http.CrossOriginProtection if Authorize goes by cookies, and Engine().Open before it
// all if a plugin is to be opened.
//
// # Routes
//
//	POST   /v1/runs                     start a run: thread, agent, text or messages
//	GET    /v1/runs/{run}               where it stands, or its result
//	GET    /v1/runs/{run}/events        its events, as server-sent events
//	POST   /v1/runs/{run}/decisions     answer its tickets
//	POST   /v1/runs/{run}/cancel        end it
//	GET    /v1/threads                  the ids of the caller's threads, in pages
//	GET    /v1/threads/{thread}         a thread and its newest run
//	DELETE /v1/threads/{thread}         drop it
//	GET    /v1/threads/{thread}/runs    its runs, oldest first, in pages
//	POST   /v1/agui/{agent}             run an agent by AG-UI
//	GET    /v1/openapi.json             the shapes of all this, see OpenAPI
//
// Bodies are JSON, and strict but for AG-UI: an unknown member, or anything behind the
// value, is a 400 with its position. A refusal is {"error":{"code":...,"message":...}}.
//
// # Whose a thread is
//
// Authorize says who asks. A thread, its runs and their tickets belong to who started
// them, and whatever another one asks about them is answered as if they did not exist.
// The engine's id of a thread begins with a hash of its owner's ID, so that ownership is
// kept with the thread, and two principals may use one id. Ids are told to owners without
// it. Tools, hooks, gates and models learn from PrincipalOf whom they work for.
//
// # Starting
//
// A run is under way when its start is answered, and is the server's from then on: it
// goes on when its client is gone. A thread has one run at a time. With a header
// Idempotency-Key a request that is repeated, also to another process, is answered with
// the run that it started, 200 instead of 201; with another body it is a 422. Keys are
// their thread's; a request that names no thread has the thread of its key. All messages
// are a person's: nobody can speak for the model, a tool or the system.
//
// # Streams
//
// Each event of a run, and of the runs that it delegates to, is told with its type and the
// JSON that a trace has of it, within Options.Rules. A client that comes back with the id
// of the last event that it saw, in the header Last-Event-ID or the parameter after, gets
// what followed, each event once and in order. A stream stays open while its run waits,
// and ends with its run; asked for what follows the last event, the server says 204.
// Texts of chunks are told if Rules.Chunks is set.
//
// The newest events of a run are kept: as many as Limits has, in memory, and those of the
// last runs only. Who asks for events that are not kept any more, or is too slow for them,
// gets a 410, or an event "gap" at the end of its stream: with where the run stands, and
// the id after which there are events. In another process there are none of the past. A
// stream that is asked for without an id begins there with an event "state" that tells
// where the run stands, and goes on with what the run does next. No client holds a run up.
//
// # Decisions
//
// A body {"decisions":[{"ticket":...,"approved":true}]} answers tickets, all or none. A
// decision has approved (true, or false with a reason for the model), or cancel; value, as
// the ticket's schema has it; args, to run the call with other arguments, which the gates
// judge again; and an id, with which a repeat changes nothing. One answer to a ticket
// counts; one that comes later is a 409. With a Journal runs are decided in any process.
// A run whose process ended while it was under way is "interrupted": an empty list of
// decisions lets it go on. A run that waits can be cancelled as well.
//
// Several processes may share a journal if Config.Owner is set and the journal leases
// threads; who comes to the wrong one hears 409 until the other one lets go. Runs that are
// under way elsewhere look interrupted, and their events are only there.
//
// # AG-UI
//
// A front end posts RunAgentInput of AG-UI 1.0 and gets the run as RUN_STARTED, STEP_*,
// TEXT_MESSAGE_*, TOOL_CALL_* and RUN_FINISHED or RUN_ERROR. The thread has the history:
// of the input's messages those of the user count that follow the last of the agent.
// Tools of the front end and context are not used, and a CUSTOM event "fixpoint.ignored"
// names what was sent. A text comes in pieces if Rules.Chunks is set, and else whole.
//
// A run that waits ends, for AG-UI, with the outcome "interrupt": each ticket is an
// interrupt with the ticket in its metadata. The next input answers it in resume, with a
// payload of approved, reason, editedArgs and value, or the status "cancelled"; the
// server's run goes on under the new runId. A run that was stopped has the outcome
// "cancelled", with its reason in the metadata. The protocol has no way to come back to a
// stream: an input that is sent again gets the run's events from the beginning while they
// are kept, and the header Location has the run's path among the routes above.
//
// # What is kept
//
// In each thread the keys Runs and Keys, which name its runs and idempotency keys. Deleting
// a thread drops them with it. Secrets that a Config.Vault keeps are the program's to drop.
package serve
