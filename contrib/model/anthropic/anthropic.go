package anthropic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient/remote"
)

// Name is what failures of this package are said to come from.
const Name = "anthropic"

// The environment variables that New reads where Options do not say.
const (
	EnvKey     = "ANTHROPIC_API_KEY"
	EnvBaseURL = "ANTHROPIC_BASE_URL"
)

// DefaultMaxTokens bounds an answer when neither the request nor Options do: the protocol wants a limit.
const DefaultMaxTokens = 32_000

// Options says whom to ask and how. The zero Options asks Anthropic with the key of the environment.
type Options struct {
	// BaseURL is the endpoint, such as "http://localhost:8000", to which the protocol adds /v1/messages; "" is that of
	// the environment, and Anthropic's own if there is none.
	BaseURL string
	// Key is sent in the header X-Api-Key. "" is the key of the environment, unless BaseURL is set here: the key of one
	// service is not sent to another by accident. Anthropic needs one; an endpoint of BaseURL may do without.
	Key string
	// Model is asked for where a request names none.
	Model string
	// Names translates the names of models in requests, as of an agent's model_id, to those of the service. A name
	// that is not in it is sent as it is.
	Names map[string]string
	// MaxTokens bounds an answer, thoughts included, where a request does not; 0 is DefaultMaxTokens.
	MaxTokens int
	// Cache asks the service to keep the request's beginning for that long, CacheFiveMinutes or CacheOneHour, so that
	// the next one is cheaper: up to the system prompt, and up to the last message. "" asks for nothing.
	Cache string
	// Budgets are for models that know no effort: instead of it, the request has the tokens that a model may think. An
	// effort that is not in it is refused. nil is for models that do know efforts. Each must be at least 1024 and less
	// than the limit of the answer.
	Budgets map[inference.Effort]int
	// SystemMessages sends messages of the role system as such, which models from Opus 4.8 on take. Otherwise they are
	// sent as a text of the user, marked by a tag.
	SystemMessages bool
	// HTTPClient sends the requests; nil is [http.DefaultClient]. It needs no time limit: contexts have those. Unless
	// it has a CheckRedirect of its own, redirects to other hosts are failures.
	HTTPClient *http.Client
	// Header is sent too, such as "Anthropic-Beta", or "Authorization" with a gateway that wants its key there.
	Header http.Header
}

// What Options.Cache may be.
const (
	CacheFiveMinutes = "5m"
	CacheOneHour     = "1h"
)

// Model asks a service. It is safe for concurrent use.
type Model struct {
	options  Options
	secrets  remote.Secrets
	messages sdk.MessageService
}

var (
	_ inference.Model    = (*Model)(nil)
	_ inference.Streamer = (*Model)(nil)
)

// New returns a model, or an error that says which option or variable is at fault. It asks the service nothing.
func New(o Options) (*Model, error) {
	at, err := remote.Endpoint{
		Provider: Name, BaseURL: o.BaseURL, Key: o.Key, EnvBaseURL: EnvBaseURL, EnvKeys: []string{EnvKey},
	}.Resolve()
	if err != nil {
		return nil, err
	}
	if o.MaxTokens < 0 {
		return nil, fmt.Errorf("anthropic: Options.MaxTokens is %d; want 0 or more", o.MaxTokens)
	}
	if o.Cache != "" && o.Cache != CacheFiveMinutes && o.Cache != CacheOneHour {
		return nil, fmt.Errorf("anthropic: Options.Cache is %q; want %q or %q", o.Cache, CacheFiveMinutes, CacheOneHour)
	}
	for _, effort := range slices.Sorted(maps.Keys(o.Budgets)) {
		if _, err := inference.ParseEffort(string(effort)); err != nil || effort == inference.EffortNone || o.Budgets[effort] < 1 {
			return nil, fmt.Errorf("anthropic: Options.Budgets has %d tokens for effort %q; want more than 0 for low, medium, high or max",
				o.Budgets[effort], string(effort))
		}
	}
	settings := []option.RequestOption{
		option.WithEnvironmentProduction(),
		option.WithMaxRetries(0),
		// Without one, the SDK sets a limit of its own and refuses long answers in one piece. Contexts have limits.
		option.WithRequestTimeout(math.MaxInt64),
		option.WithHeaderDel("X-Stainless-Timeout"),
		option.WithHTTPClient(remote.Staying(o.HTTPClient)),
	}
	if at.BaseURL != "" {
		settings = append(settings, option.WithBaseURL(strings.TrimRight(at.BaseURL, "/")+"/"))
	}
	if at.Key != "" {
		settings = append(settings, option.WithAPIKey(at.Key))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Header)) {
		for i, value := range o.Header[name] {
			if i == 0 {
				settings = append(settings, option.WithHeader(name, value))
			} else {
				settings = append(settings, option.WithHeaderAdd(name, value))
			}
		}
	}
	o.MaxTokens = cmp.Or(o.MaxTokens, DefaultMaxTokens)
	hidden := remote.SecretsOf(at.Key, o.Header)
	o.Names, o.Budgets, o.Header, o.Key = maps.Clone(o.Names), maps.Clone(o.Budgets), nil, ""
	// Not by way of sdk.NewClient, which takes keys and headers from the environment.
	return &Model{options: o, secrets: hidden, messages: sdk.NewMessageService(settings...)}, nil
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
func (m *Model) ask(ctx context.Context, r inference.Request, send func(*exchange, sdk.MessageNewParams, []option.RequestOption) error) iter.Seq2[inference.Chunk, error] {
	return func(yield func(inference.Chunk, error) bool) {
		r.Model = cmp.Or(r.Model, m.options.Model)
		if name, ok := m.options.Names[r.Model]; ok {
			r.Model = name
		}
		x := &exchange{ctx: ctx, model: m, request: r, yield: yield}
		err := ctx.Err()
		if err == nil {
			params, more, unsendable := m.request(r)
			if unsendable != nil {
				err = remote.Unsent(unsendable)
			} else {
				err = send(x, params, append(more, option.WithResponseInto(&x.http)))
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
	// http is the answer as the SDK got it, if there was one.
	http *http.Response
	// left is true when nobody listens any more, and partial when text or a call was yielded.
	left, partial bool
}

// whole asks for an answer in one piece.
func (x *exchange) whole(params sdk.MessageNewParams, more []option.RequestOption) error {
	answer, err := x.model.messages.New(x.ctx, params, more...)
	if err != nil {
		return err
	}
	if answer == nil || !answer.JSON.Content.Valid() {
		return errors.New("what the service sent is no answer")
	}
	return x.message(answer)
}

// stream asks for an answer piece by piece.
func (x *exchange) stream(params sdk.MessageNewParams, more []option.RequestOption) error {
	events := x.model.messages.NewStreaming(x.ctx, params, more...)
	defer events.Close()
	return x.events(events)
}

// say yields a chunk.
func (x *exchange) say(c inference.Chunk) {
	if x.left || c == (inference.Chunk{}) {
		return
	}
	x.partial = x.partial || c.Text != "" || c.ToolCall != (inference.ToolCallDelta{})
	x.left = !x.yield(c, nil)
}
