package gemini

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"

	"google.golang.org/genai"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient/remote"
)

// Name is what failures of this package are said to come from.
const Name = "gemini"

// The environment variables that New reads where Options do not say. Of the keys the first one counts.
const (
	EnvKey      = "GEMINI_API_KEY"
	EnvOtherKey = "GOOGLE_API_KEY"
	EnvBaseURL  = "GOOGLE_GEMINI_BASE_URL"
)

// Options says whom to ask and how. The zero Options asks the Gemini API with the key of the environment.
type Options struct {
	// BaseURL is the endpoint, such as "http://localhost:8000", to which the protocol adds the version and the model;
	// "" is that of the environment, and Google's own if there is none.
	BaseURL string
	// Key is sent in the header X-Goog-Api-Key. "" is the key of the environment, unless BaseURL is set here: the key
	// of one service is not sent to another by accident. Google needs one; an endpoint of BaseURL may do without.
	Key string
	// Model is asked for where a request names none.
	Model string
	// Names translates the names of models in requests, as of an agent's model_id, to those of the service. A name
	// that is not in it is sent as it is.
	Names map[string]string
	// Budgets are for models before Gemini 3, which know no levels of thinking: instead of one, the request has the
	// tokens that a model may think, -1 for as many as it likes. An effort that is not in it is refused, but for none.
	// nil is for models that do know levels.
	Budgets map[inference.Effort]int
	// HTTPClient sends the requests; nil is [http.DefaultClient]. It needs no time limit: contexts have those. Unless
	// it has a CheckRedirect of its own, redirects to other hosts are failures.
	HTTPClient *http.Client
	// Header is sent too, such as "Authorization" with a gateway that wants its key there.
	Header http.Header
}

// Model asks a service. It is safe for concurrent use.
type Model struct {
	options Options
	secrets remote.Secrets
	client  *genai.Client
}

var (
	_ inference.Model    = (*Model)(nil)
	_ inference.Streamer = (*Model)(nil)
)

// New returns a model, or an error that says which option or variable is at fault. It asks the service nothing.
func New(o Options) (*Model, error) {
	at, err := remote.Endpoint{
		Provider: Name, BaseURL: o.BaseURL, Key: o.Key, EnvBaseURL: EnvBaseURL, EnvKeys: []string{EnvKey, EnvOtherKey},
	}.Resolve()
	if err != nil {
		return nil, err
	}
	for _, effort := range slices.Sorted(maps.Keys(o.Budgets)) {
		if _, err := inference.ParseEffort(string(effort)); err != nil || o.Budgets[effort] < -1 {
			return nil, fmt.Errorf("gemini: Options.Budgets has %d tokens for effort %q; want -1 or more for none, low, medium, high or max",
				o.Budgets[effort], string(effort))
		}
	}
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		// All that the SDK would take from the environment is set here. It insists on a key.
		Backend:     genai.BackendGeminiAPI,
		APIKey:      cmp.Or(at.Key, "none"),
		HTTPClient:  wired(o.HTTPClient, at.Key == ""),
		HTTPOptions: genai.HTTPOptions{BaseURL: at.BaseURL, Headers: o.Header.Clone()},
	})
	if err != nil {
		return nil, errors.New("gemini: the SDK does not take these Options") // what it says has the key
	}
	hidden := remote.SecretsOf(at.Key, o.Header)
	o.Names, o.Budgets, o.Header, o.Key = maps.Clone(o.Names), maps.Clone(o.Budgets), nil, ""
	return &Model{options: o, secrets: hidden, client: client}, nil
}

// Generate asks for an answer in one piece. Errors are [*resilient.Failure].
func (m *Model) Generate(ctx context.Context, r inference.Request) (inference.Response, error) {
	answer, err := inference.Collect(m.ask(ctx, r, (*exchange).whole))
	if err != nil {
		return inference.Response{Usage: answer.Usage}, err // what failed is paid for, too
	}
	return answer, nil
}

// Stream asks for an answer piece by piece, when the sequence is walked. Errors are [*resilient.Failure].
func (m *Model) Stream(ctx context.Context, r inference.Request) iter.Seq2[inference.Chunk, error] {
	return m.ask(ctx, r, (*exchange).stream)
}

// ask yields what the service answers, of which a whole answer is only a short stream.
func (m *Model) ask(ctx context.Context, r inference.Request, send func(*exchange, *genai.GenerateContentConfig) error) iter.Seq2[inference.Chunk, error] {
	return func(yield func(inference.Chunk, error) bool) {
		r.Model = cmp.Or(r.Model, m.options.Model)
		if name, ok := m.options.Names[r.Model]; ok {
			r.Model = name
		}
		x := &exchange{ctx: ctx, model: m, request: r, yield: yield}
		err := ctx.Err()
		if err == nil {
			var body map[string]any
			if body, err = m.body(r); err != nil {
				err = remote.Unsent(err)
			} else {
				err = x.guarded(send, body)
			}
		}
		if err != nil && !x.left {
			yield(inference.Chunk{}, x.failure(err))
		}
	}
}

// exchange is one request and what comes back.
type exchange struct {
	ctx     context.Context
	model   *Model
	request inference.Request
	yield   func(inference.Chunk, error) bool
	// http is the answer, if there was one, and broken why its body could not be read to the end.
	http   *http.Response
	broken error
	// left is true when nobody listens any more, partial when text or a call was yielded, and yielding while the
	// listener runs.
	left, partial, yielding bool
}

// guarded sends the body. The SDK panics when an answer has not the form that it expects.
func (x *exchange) guarded(send func(*exchange, *genai.GenerateContentConfig) error, body map[string]any) (err error) {
	defer func() {
		if x.yielding {
			return // a panic of the listener's, and its own affair
		}
		if p := recover(); p != nil {
			err = fmt.Errorf("what the service sent is no answer: %v", p)
		}
	}()
	once := false
	return send(x, &genai.GenerateContentConfig{
		AutomaticContinuation: &once,
		// The body is not written with the SDK's types, which lose the order of a schema's members, in which models
		// read and write, and digits of numbers.
		HTTPOptions: &genai.HTTPOptions{ExtrasRequestProvider: func(map[string]any) map[string]any { return body }},
	})
}

// whole asks for an answer in one piece.
func (x *exchange) whole(config *genai.GenerateContentConfig) error {
	r, err := x.model.client.Models.GenerateContent(withExchange(x), x.request.Model, nil, config)
	if err != nil {
		return err
	}
	a := answer{x: x}
	if err := a.take(r); err != nil {
		return err
	}
	return a.end()
}

// stream asks for an answer piece by piece.
func (x *exchange) stream(config *genai.GenerateContentConfig) error {
	a := answer{x: x}
	for r, err := range x.model.client.Models.GenerateContentStream(withExchange(x), x.request.Model, nil, config) {
		if err == nil {
			err = a.take(r)
		}
		if err != nil {
			return err
		}
		if x.left {
			return nil
		}
	}
	return a.end()
}

// say yields a chunk.
func (x *exchange) say(c inference.Chunk) {
	if x.left || c == (inference.Chunk{}) {
		return
	}
	x.partial = x.partial || c.Text != "" || c.ToolCall != (inference.ToolCallDelta{})
	x.yielding = true
	x.left = !x.yield(c, nil)
	x.yielding = false
}
