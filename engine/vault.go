package engine

import (
	"context"
	"errors"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/redact"
	"github.com/ddd26017/fixpoint/phase"
)

// Vault keeps the values of secret answers outside of state, events, logs and the
// journal, which get a handle that says nothing. It must be safe for concurrent use.
type Vault interface {
	// Keep stores a secret that belongs to a thread and returns its handle.
	Keep(ctx context.Context, thread, secret string) (handle string, err error)
	// Reveal returns the secret.
	Reveal(ctx context.Context, handle string) (secret string, err error)
}

// Forgetter is implemented by vaults that drop a secret once the tool call that it was
// asked for has its result, unless the result hands the handle on. If the process ends
// just then, Forget is not called.
type Forgetter interface {
	Forget(ctx context.Context, handle string) error
}

// keeper keeps the secret answer to a ticket and returns its handle.
type keeper func(ticket string, value inference.JSON) (handle string, err error)

// ErrVault: Config.Vault did not keep a secret, or its handle shows it. The cause is
// left out, since it might too.
var ErrVault = errors.New("engine: the vault could not keep the secret")

// keeper returns what puts secrets into the vault, each once, and forget, which takes
// them out again when their decisions were not applied. Without a vault a secret lives
// as long as this part of the run does.
func (r *run) keeper(ctx context.Context) (keep keeper, forget func(error)) {
	kept := map[string]string{}
	keep = func(ticket string, value inference.JSON) (string, error) {
		if handle, ok := kept[ticket]; ok || r.eng.config.Vault == nil {
			return handle, nil
		}
		var secret string
		if err := value.Decode(&secret); err != nil {
			return "", ErrVault
		}
		handle, err := within(ctx, nil, r.eng.config.Limits.JournalTimeout, "Config.Vault", phase.ToolGate,
			func(ctx context.Context) (string, error) { return r.eng.config.Vault.Keep(ctx, r.th.id, secret) })
		if err != nil || handle == "" || handle == secret || len(secret) >= shortestSecret && strings.Contains(handle, secret) {
			return "", ErrVault
		}
		kept[ticket] = handle
		return handle, nil
	}
	return keep, func(err error) {
		if errors.Is(err, ErrUnknownOutcome) {
			return // whoever finds the decision kept needs the secret
		}
		for _, handle := range kept {
			r.forget(ctx, handle)
		}
	}
}

func (r *run) forget(ctx context.Context, handle string) {
	if f, ok := r.eng.config.Vault.(Forgetter); ok && handle != "" {
		_, err := within(context.WithoutCancel(ctx), nil, r.eng.config.Limits.Grace, "Config.Vault", phase.ToolGate,
			func(ctx context.Context) (struct{}, error) { return struct{}{}, f.Forget(ctx, handle) })
		if err != nil {
			r.warn(scene{}, engineName, "the vault did not forget a secret that is not needed any more (handle %s)", handle)
		}
	}
}

// withSecret returns the answer with its secret value, which is not in state. It has none
// if nobody knows it any more.
func (r *run) withSecret(ctx context.Context, a TicketAnswer) phase.Answer {
	if value, ok := r.secrets[a.Ticket.ID]; ok {
		a.Answer.Value = value
	} else if a.Answer.Handle != "" && r.eng.config.Vault != nil {
		secret, err := within(ctx, nil, r.eng.config.Limits.JournalTimeout, "Config.Vault", phase.ToolGate,
			func(ctx context.Context) (string, error) { return r.eng.config.Vault.Reveal(ctx, a.Answer.Handle) })
		if err != nil {
			r.warn(scene{}, engineName, "the vault did not reveal the answer to ticket %s; it is lost", a.Ticket.ID)
		} else {
			a.Answer.Value, _ = inference.ToJSON(secret)
		}
		r.keepSecret(a.Ticket.ID, a.Answer.Value)
	}
	return a.Answer
}

// keepSecret keeps a secret value for as long as this part of the run lasts.
func (r *run) keepSecret(ticket string, value inference.JSON) {
	if r.secrets == nil {
		r.secrets = map[string]inference.JSON{}
	}
	r.secrets[ticket] = value
}

// shortestSecret is the shortest text that is taken out of results: shorter ones
// would be found everywhere.
const shortestSecret = 4

// censor takes the secrets that a tool was given out of what it tells the model.
func censor(out *Output, secrets []phase.Answer) {
	var texts []string
	for _, a := range secrets {
		var text string
		if a.Value.Decode(&text) == nil && len(text) >= shortestSecret {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return
	}
	hide := redact.Texts("[secret]", texts...)
	out.Content = hide.In(out.Content)
	if details, found := hide.InJSON(string(out.Details)); found {
		out.Details = inference.JSON(details)
	}
}
