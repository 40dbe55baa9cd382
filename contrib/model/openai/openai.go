package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient/remote"
)

// Name is what failures of this package are said to come from.
const Name = "openai"

// API is one of the two protocols.
type API string

// The protocols.
const (
	// Responses is what OpenAI recommends, and the default.
	Responses API = "responses"
	// ChatCompletions is what most compatible services speak.
	ChatCompletions API = "chat_completions"
)

// The environment variables that New reads where Options do not say.
const (
	EnvKey     = "OPENAI_API_KEY"
	EnvBaseURL = "OPENAI_BASE_URL"
)

// Options says whom to ask and how. The zero Options asks OpenAI with the key of the environment.
type Options struct {
	// BaseURL is the endpoint, such as "http://localhost:8000/v1"; "" is that of the environment, and OpenAI's own if
	// there is none.
	BaseURL string
	// Key is sent as a bearer token. "" is the key of the environment, unless BaseURL is set here: the key of one
	// service is not sent to another by accident. OpenAI needs one; an endpoint of BaseURL may do without.
	Key string
	// API is the protocol; "" is Responses.
	API API
	// Model is asked for where a request names none.
	Model string
	// Names translates the names of models in requests, as of an agent's model_id, to those of the service. A name
	// that is not in it is sent as it is.
	Names map[string]string
	// HTTPClient sends the requests; nil is [http.DefaultClient]. It needs no time limit: contexts have those. Unless
	// it has a CheckRedirect of its own, redirects to other hosts are failures.
	HTTPClient *http.Client
	// Header is sent too, such as "OpenAI-Project", or "api-key" with a service that wants its key there.
	Header http.Header
	// Strict asks the service to hold arguments to the schemas of tools, all of which must then keep to the rules that
	// the service has for that.
	Strict bool
	// OldMaxTokens sends the limit of an answer as max_tokens, as older services with ChatCompletions want it, instead
	// of max_completion_tokens.
	OldMaxTokens bool
}

// Model asks a service. It is safe for concurrent use.
type Model struct {
	options   Options
	secrets   remote.Secrets
	responses responses.ResponseService
	chat      sdk.ChatCompletionService
}

var (
	_ inference.Model    = (*Model)(nil)
	_ inference.Streamer = (*Model)(nil)
)

// New returns a model, or an error that says which option or variable is at fault. It asks the service nothing.
func New(o Options) (*Model, error) {
	o.API = cmp.Or(o.API, Responses)
	if o.API != Responses && o.API != ChatCompletions {
		return nil, fmt.Errorf("openai: Options.API is %q; want %q or %q", o.API, Responses, ChatCompletions)
	}
	at, err := remote.Endpoint{
		Provider: Name, BaseURL: o.BaseURL, Key: o.Key, EnvBaseURL: EnvBaseURL, EnvKeys: []string{EnvKey},
	}.Resolve()
	if err != nil {
		return nil, err
	}
	settings := []option.RequestOption{option.WithEnvironmentProduction(), option.WithMaxRetries(0)}
	if at.BaseURL != "" {
		settings = append(settings, option.WithBaseURL(strings.TrimRight(at.BaseURL, "/")+"/"))
	}
	if at.Key != "" {
		settings = append(settings, option.WithAPIKey(at.Key))
	}
	settings = append(settings, option.WithHTTPClient(remote.Staying(o.HTTPClient)))
	for _, name := range slices.Sorted(maps.Keys(o.Header)) {
		for i, value := range o.Header[name] {
			if i == 0 {
				settings = append(settings, option.WithHeader(name, value))
			} else {
				settings = append(settings, option.WithHeaderAdd(name, value))
			}
		}
	}
	hidden := remote.SecretsOf(at.Key, o.Header)
	o.Names, o.Header, o.Key = maps.Clone(o.Names), nil, ""
	return &Model{
		options: o, secrets: hidden,
		// Not by way of sdk.NewClient, which takes keys and headers from the environment.
		responses: responses.NewResponseService(settings...),
		chat:      sdk.NewChatCompletionService(settings...),
	}, nil
}

// Generate asks for an answer in one piece. Errors are [*resilient.Failure].
func (m *Model) Generate(ctx context.Context, r inference.Request) (inference.Response, error) {
	answer, err := inference.Collect(m.ask(ctx, r, false))
	if err != nil {
		return inference.Response{Usage: answer.Usage}, err // what failed is paid for, too
	}
	return answer, nil
}

// Stream asks for an answer piece by piece, when the sequence is walked. Errors are [*resilient.Failure].
func (m *Model) Stream(ctx context.Context, r inference.Request) iter.Seq2[inference.Chunk, error] {
	return m.ask(ctx, r, true)
}

// ask yields what the service answers, of which a whole answer is only a short stream.
func (m *Model) ask(ctx context.Context, r inference.Request, stream bool) iter.Seq2[inference.Chunk, error] {
	return func(yield func(inference.Chunk, error) bool) {
		r.Model = cmp.Or(r.Model, m.options.Model)
		if name, ok := m.options.Names[r.Model]; ok {
			r.Model = name
		}
		x := &exchange{ctx: ctx, model: m, request: r, yield: yield}
		var err error
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case r.Model == "":
			err = remote.Unsent(errors.New("the request names no model, and neither does Options.Model"))
		default:
			if err = r.Params.Validate(); err != nil {
				err = remote.Unsent(err)
			} else if m.options.API == ChatCompletions {
				err = x.chat(stream)
			} else {
				err = x.responses(stream)
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

// say yields a chunk and reports whether to go on.
func (x *exchange) say(c inference.Chunk) bool {
	if x.left || c == (inference.Chunk{}) {
		return !x.left
	}
	x.partial = x.partial || c.Text != "" || c.ToolCall != (inference.ToolCallDelta{})
	x.left = !x.yield(c, nil)
	return !x.left
}
