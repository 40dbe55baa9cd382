package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// startBody is what a run is started with.
type startBody struct {
	Thread   string        `json:"thread"`
	Agent    string        `json:"agent"`
	Text     string        `json:"text"`
	Messages []messageBody `json:"messages"`
}

// messageBody is what a person says. Nobody can say anything in the name of the model, of
// a tool or of the system.
type messageBody struct {
	Text  string           `json:"text"`
	Parts []inference.Part `json:"parts"`
}

// order is a run that is to be started.
type order struct {
	thread string // from outside
	agent  engine.AgentSpec
	key    string // of idempotency, or ""
	digest string
	in     engine.Input
}

// startRun starts a run, or finds the one that the same request started before.
func (s *Server) startRun(c caller, w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	var body startBody
	text, err := s.strict(w, r, &body)
	if err != nil {
		return err
	}
	o, err := s.order(c, r, body)
	if err != nil {
		return err
	}
	canonical, err := text.Canonical()
	if err != nil {
		return positioned(err)
	}
	o.digest = digest(string(canonical))
	k, repeated, err := s.start(c, r.Context(), o)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/runs/"+c.outside(k.id))
	status := http.StatusCreated
	if repeated {
		w.Header().Set("Idempotency-Replayed", "true")
		status = http.StatusOK
	}
	c.write(w, status, s.view(k))
	return nil
}

// order makes sense of a request to start a run.
func (s *Server) order(c caller, r *http.Request, body startBody) (o order, err error) {
	keys := r.Header.Values("Idempotency-Key")
	if len(keys) > 1 || len(keys) == 1 && (keys[0] == "" || len(keys[0]) > 200) {
		return o, refuse(http.StatusBadRequest, "bad_key", "Idempotency-Key is one text of 1 to 200 bytes")
	}
	if len(keys) == 1 {
		o.key = keys[0]
	}
	if o.thread = body.Thread; o.thread == "" {
		if o.thread = "t" + s.newID(); o.key != "" {
			// So that a repeat finds the thread that the first one made.
			o.thread = "k" + digest(o.key)[:24]
		}
	} else if err := goodThread(o.thread); err != nil {
		return o, err
	}
	if o.agent, err = s.agent(body.Agent); err != nil {
		return o, err
	}
	messages := body.Messages
	if body.Text != "" {
		if len(messages) > 0 {
			return o, refuse(http.StatusBadRequest, "bad_input", "send text or messages, not both")
		}
		messages = []messageBody{{Text: body.Text}}
	}
	o.in, err = s.input(messages)
	return o, err
}

func goodThread(id string) error {
	if !goodID(id) || len(id) > longestID {
		return refuse(http.StatusBadRequest, "bad_thread",
			"a thread id is made of at most 100 letters, digits and, behind the first, dots, dashes, colons and underscores")
	}
	return nil
}

// agent returns the agent of an id; "" is the only one there is.
func (s *Server) agent(id string) (engine.AgentSpec, error) {
	if id == "" && s.only == "" {
		return engine.AgentSpec{}, refuse(http.StatusBadRequest, "which_agent", "name an agent; there are several")
	}
	a, ok := s.agents[cmp.Or(id, s.only)]
	if !ok {
		return a, refuse(http.StatusBadRequest, "unknown_agent", "there is no agent of that name")
	}
	return a, nil
}

// input makes a run's input of what a person says.
func (s *Server) input(messages []messageBody) (engine.Input, error) {
	in := engine.Input{Adapter: "http"}
	switch n := len(messages); {
	case n == 0:
		return in, refuse(http.StatusBadRequest, "bad_input", "there is nothing to start with; send text or messages")
	case n > s.options.Limits.Messages:
		return in, refuse(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("there are more than %d messages", s.options.Limits.Messages))
	}
	for i, m := range messages {
		size := len(m.Text)
		for _, p := range m.Parts {
			size += len(p.Text) + len(p.URI) + len(p.Data) + len(p.Extra)
			switch p.Kind {
			case inference.PartText, inference.PartImage, inference.PartAudio, inference.PartFile:
			default:
				return in, refuse(http.StatusBadRequest, "bad_input", fmt.Sprintf("message %d has a part of a kind that people do not send; use text, image, audio or file", i))
			}
			if p.Extra != "" {
				return in, refuse(http.StatusBadRequest, "bad_input", fmt.Sprintf("message %d has a part with extra, which is not for people to send", i))
			}
		}
		switch {
		case size > s.options.Limits.Text:
			return in, refuse(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("message %d is longer than %d bytes", i, s.options.Limits.Text))
		case size == 0:
			return in, refuse(http.StatusBadRequest, "bad_input", fmt.Sprintf("message %d is empty", i))
		}
		in.Messages = append(in.Messages, inference.Message{Role: inference.RoleUser, Text: m.Text, Parts: m.Parts})
	}
	return in, nil
}

// digest stands for a text where only sameness counts.
func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// start starts a run in the thread, and returns once it began: the run is the server's
// then. A repeat of an order with a key is answered with the run that there is.
func (s *Server) start(c caller, ctx context.Context, o order) (k known, repeated bool, err error) {
	t, done, err := s.at(ctx, c.inside(o.thread))
	if err != nil {
		return k, false, err
	}
	defer done()
	g, err := s.busy(ctx, t)
	if err != nil {
		return k, false, err
	}
	var th *engine.Thread
	if g != nil {
		th = g.th
	} else if th, err = s.engine.OpenThread(ctx, t.id); err != nil {
		return k, false, err
	}
	k = known{thread: t.id, th: th, snap: th.Snapshot()}
	if o.key != "" {
		number, found := Keys.Get(k.snap, o.key)
		if found {
			k.number = number
			k.record, _ = Runs.Get(k.snap, number)
			k.id = k.record.Run
			if k.record.Digest != o.digest {
				return k, false, refuse(http.StatusUnprocessableEntity, "key_reused", "the idempotency key was used for another request")
			}
			if s.view(k).Status != StatusCreated {
				return k, true, nil
			}
		}
	}
	if g != nil {
		return k, false, engine.ErrBusy
	}
	switch l := phase.RunLifecycle.Get(k.snap); {
	case l.Status == phase.Waiting:
		return k, false, engine.ErrWaiting
	case l.Status == phase.Running:
		return k, false, refuse(http.StatusConflict, "interrupted",
			"the thread's last run was interrupted; send its decisions, none if it has no tickets, and it goes on, or cancel it")
	}
	if k.id == "" {
		if err := s.record(c, ctx, &k, o); err != nil {
			return k, false, err
		}
	}
	o.in.RunID = k.id
	running, err := s.launch(c, t, th, k.id, fresh, func(ctx context.Context) (*engine.Result, error) {
		return th.Run(ctx, o.agent, o.in)
	})
	if err != nil {
		return k, false, err
	}
	if err := running.begun(ctx); err != nil {
		return k, false, err
	}
	k.snap = th.Snapshot()
	return k, false, nil
}

// record writes down that a run is to start, and what became of the one before it.
func (s *Server) record(c caller, ctx context.Context, k *known, o order) error {
	s.mu.Lock()
	err := s.mayRun(c) // before anything is written
	closing := s.closing
	s.mu.Unlock()
	if closing {
		return ended()
	}
	if err != nil {
		return err
	}
	last := newest(k.snap)
	k.number = last + 1
	k.id = c.inside(runID(o.thread, k.number, s.newID()))
	k.record = RunRecord{Run: k.id, Agent: o.agent.ID, Digest: o.digest}
	var cmd phase.Command
	cmd.Update(Runs.Put(k.number, k.record))
	if o.key != "" {
		cmd.Update(Keys.Put(o.key, k.number))
	}
	if before, ok := Runs.Get(k.snap, last); ok {
		b := known{id: before.Run, thread: k.thread, number: last, record: before, th: k.th, snap: k.snap}
		before.Outcome = s.outcome(b)
		cmd.Update(Runs.Put(last, before))
	}
	_, err = k.th.Submit(context.WithoutCancel(ctx), Name, cmd) // a commit has a limit of its own
	return err
}

// showRun tells where a run stands.
func (s *Server) showRun(c caller, w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	k, err := s.find(c, r)
	if err != nil {
		return err
	}
	c.write(w, http.StatusOK, s.view(k))
	return nil
}
