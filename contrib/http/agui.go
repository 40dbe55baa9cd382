package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// aguiVersion is the version of AG-UI that is spoken.
const aguiVersion = "1.0"

// aguiInput is AG-UI's RunAgentInput, as far as it is understood. The protocol wants the
// rest to be left out, not refused.
type aguiInput struct {
	ThreadID *string           `json:"threadId"`
	RunID    *string           `json:"runId"`
	Messages *[]aguiMessage    `json:"messages"`
	Tools    []json.RawMessage `json:"tools"`
	Context  []json.RawMessage `json:"context"`
	Resume   []aguiAnswer      `json:"resume"`
}

type aguiMessage struct {
	ID      string          `json:"id"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// aguiAnswer is AG-UI's ResumeEntry.
type aguiAnswer struct {
	Interrupt string         `json:"interruptId"`
	Status    string         `json:"status"`
	Payload   inference.JSON `json:"payload"`
}

// aguiPayload is what answers an interrupt, as its responseSchema has it.
type aguiPayload struct {
	Approved *bool          `json:"approved"`
	Reason   string         `json:"reason"`
	Value    inference.JSON `json:"value"`
	Args     inference.JSON `json:"editedArgs"`
}

// agui runs an agent for a front end that speaks AG-UI over HTTP and SSE.
func (s *Server) agui(c caller, w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	var in aguiInput
	if _, err := s.lenient(w, r, &in); err != nil {
		return err
	}
	switch {
	case in.ThreadID == nil || in.RunID == nil || in.Messages == nil:
		return refuse(http.StatusBadRequest, "bad_input", "threadId, runId and messages are required")
	case *in.RunID == "" || len(*in.RunID) > longestID:
		return refuse(http.StatusBadRequest, "bad_input", "runId is a text of 1 to 100 bytes")
	}
	if err := goodThread(*in.ThreadID); err != nil {
		return err
	}
	spec, err := s.agent(r.PathValue("agent"))
	if err != nil {
		return hidden() // it is in the path
	}
	done, err := s.mayStream(c)
	if err != nil {
		return err
	}
	defer done()
	var st *stream
	var from uint64
	if len(in.Resume) > 0 {
		st, from, err = s.aguiResume(c, r.Context(), in)
	} else {
		st, err = s.aguiStart(c, r.Context(), spec, in)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/runs/"+c.outside(st.run))
	out := s.begin(w, c)
	defer out.end()
	a := &aguiTeller{out: out, thread: *in.ThreadID, run: *in.RunID, of: c.outside(st.run)}
	a.started()
	if ignored := in.ignored(); len(ignored) > 0 {
		a.tell(aguiEvent{Type: "CUSTOM", Name: "fixpoint.ignored", Value: ignored})
	}
	s.follow(r.Context(), out, st, from, a.line, func(uint64) {
		a.failed("events of the run are missing here; ask for its state", "gap")
	})
	return nil
}

// ignored names what the input has and this server does not use.
func (in aguiInput) ignored() (names []string) {
	if len(in.Tools) > 0 {
		names = append(names, "tools")
	}
	if len(in.Context) > 0 {
		names = append(names, "context")
	}
	return names
}

// aguiStart starts a run with what was said since the model spoke last: the thread has
// what came before.
func (s *Server) aguiStart(c caller, ctx context.Context, spec engine.AgentSpec, in aguiInput) (*stream, error) {
	all := *in.Messages
	first := len(all)
	for first > 0 && all[first-1].Role != "assistant" && all[first-1].Role != "tool" {
		first--
	}
	var said []messageBody
	for i, m := range all[first:] {
		if m.Role != "user" {
			continue // instructions are the agent's, activities the front end's
		}
		body, err := m.said()
		if err != nil {
			return nil, refuse(http.StatusBadRequest, "bad_input", fmt.Sprintf("message %d: %v", first+i, err))
		}
		if body.Text != "" || len(body.Parts) > 0 {
			said = append(said, body)
		}
	}
	o := order{thread: *in.ThreadID, agent: spec, key: "agui:" + *in.RunID}
	var err error
	if o.in, err = s.input(said); err != nil {
		return nil, err
	}
	o.in.Adapter = "agui"
	text, err := json.Marshal(said)
	if err != nil {
		return nil, positioned(err)
	}
	o.digest = digest(spec.ID + "\x00" + string(text))
	k, repeated, err := s.start(c, ctx, o)
	if err != nil {
		return nil, err
	}
	st := s.streams.of(k.id)
	if st == nil || repeated && (!st.fresh || st.after(0).gap) {
		return nil, gap(s.view(k), lastOfAll)
	}
	return st, nil
}

// aguiResume answers the interrupts that a run ended with, as AG-UI sees it: the run that
// waits goes on.
func (s *Server) aguiResume(c caller, ctx context.Context, in aguiInput) (*stream, uint64, error) {
	th, err := s.look(ctx, c.inside(*in.ThreadID))
	if err != nil {
		return nil, 0, err
	}
	k, ok := known{thread: th.ID(), th: th, snap: th.Snapshot()}.numbered(newest(th.Snapshot()))
	if !ok {
		return nil, 0, hidden()
	}
	var ds []engine.Decision
	for i, a := range in.Resume {
		d, err := a.decision(c)
		if err != nil {
			return nil, 0, refuse(http.StatusBadRequest, "bad_input", fmt.Sprintf("resume entry %d: %v", i, err))
		}
		ds = append(ds, d)
	}
	g, err := s.resume(c, ctx, &k, false, ds)
	if err != nil {
		return nil, 0, err
	}
	if g.stream.after(g.from).gap { // it ran away from us already
		return nil, 0, gap(s.view(k), g.stream.event(g.stream.after(0).oldest))
	}
	from := g.from
	if g.stream.end() == from { // all was decided before
		if from == 0 {
			return nil, 0, gap(s.view(k), lastOfAll)
		}
		from-- // the last event says where the run stands
	}
	return g.stream, from, nil
}

// said is what a person said.
func (m aguiMessage) said() (messageBody, error) {
	var body messageBody
	if json.Unmarshal(m.Content, &body.Text) == nil {
		return body, nil
	}
	var parts []struct {
		Type   string `json:"type"`
		Text   string `json:"text"`
		Source struct {
			Type  string `json:"type"`
			Value string `json:"value"`
			MIME  string `json:"mimeType"`
		} `json:"source"`
	}
	if err := json.Unmarshal(m.Content, &parts); err != nil {
		return body, fmt.Errorf("its content is neither a text nor a list of parts")
	}
	kinds := map[string]string{"image": inference.PartImage, "audio": inference.PartAudio, "document": inference.PartFile}
	for _, p := range parts {
		part := inference.Part{Kind: kinds[p.Type], MediaType: p.Source.MIME}
		switch {
		case p.Type == "text" && body.Text == "" && len(body.Parts) == 0:
			body.Text = p.Text
			continue
		case p.Type == "text":
			part = inference.Part{Kind: inference.PartText, Text: p.Text}
		case part.Kind == "":
			continue // what cannot be used is left out
		case p.Source.Type == "url":
			part.URI = p.Source.Value
		case p.Source.Type == "data":
			if err := part.Data.UnmarshalText([]byte(p.Source.Value)); err != nil {
				return body, fmt.Errorf("a part's data is not base64")
			}
		default:
			continue
		}
		body.Parts = append(body.Parts, part)
	}
	return body, nil
}

// decision is what the entry says about a ticket. Its id comes from all that it says, so
// that sending it again is harmless.
func (a aguiAnswer) decision(c caller) (engine.Decision, error) {
	d := engine.Decision{Answer: phase.Answer{Ticket: c.inside(a.Interrupt)}}
	if a.Interrupt == "" {
		return d, fmt.Errorf("interruptId is missing")
	}
	payload := cmp.Or(a.Payload, "null")
	switch a.Status {
	case "cancelled":
		d.Answer.Cancel = true
		payload = "null"
	case "resolved":
		var p aguiPayload
		if err := payload.Decode(&p); err != nil || p.Approved == nil {
			return d, fmt.Errorf("its payload is not of the interrupt's responseSchema")
		}
		d.Answer.Approved, d.Answer.Reason, d.Answer.Value, d.Answer.Args = *p.Approved, p.Reason, p.Value, p.Args
	default:
		return d, fmt.Errorf("status is resolved or cancelled")
	}
	canonical, err := payload.Canonical()
	if err != nil {
		return d, err
	}
	d.ID = "agui:" + digest(a.Interrupt+"\x00"+a.Status+"\x00"+string(canonical))
	return d, nil
}
