package terminal

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Fact is a line of the summary that the run itself does not know.
type Fact struct{ Label, Text string }

// reasonTexts say in words why a run ended.
func reasonText(r phase.Reason) string {
	switch r {
	case phase.ReasonNatural:
		return "the model asked for nothing more"
	case phase.ReasonMaxRounds:
		return "the limit of steps"
	case phase.ReasonTimeout:
		return "the limit of time"
	case phase.ReasonTokenBudget:
		return "the limit of tokens"
	case phase.ReasonConsecutiveErrors:
		return "too many errors in a row"
	case phase.ReasonStopOnTool:
		return "a tool that ends the run was called"
	case phase.ReasonContentMatch:
		return "the answer matched"
	case phase.ReasonLoop:
		return "the same calls again and again"
	case phase.ReasonBlocked:
		return "a gate ended it"
	case phase.ReasonCancelled:
		return "before its end"
	case phase.ReasonWaiting:
		return "an answer is needed"
	case phase.ReasonError:
		return "an error"
	default:
		return ""
	}
}

// Summary writes how a run went.
func (p *Printer) Summary(res *engine.Result, facts ...Fact) {
	s := p.s
	st := res.Stats
	p.gap()
	look := s.good
	switch res.Reason {
	case phase.ReasonNatural, phase.ReasonStopOnTool, phase.ReasonContentMatch:
	case phase.ReasonError, phase.ReasonCancelled:
		look = s.bad
	default:
		look = s.note
	}
	p.line(look, "ended", 0, look.Render(string(res.Reason))+":", s.dim.Render(reasonText(res.Reason)))
	if res.Detail != "" {
		p.line(s.dim, "why", 0, clean(res.Detail))
	}
	if res.Err != nil && res.Err.Error() != res.Detail {
		for line := range strings.Lines(res.Err.Error()) {
			p.line(s.bad, "error", 0, clean(line))
		}
	}
	p.answer(res.Text)
	for _, f := range facts {
		p.line(s.bold, f.Label, 0, clean(f.Text))
	}
	p.gap()
	row := func(label, text string) { p.line(s.dim, label, 0, text) }
	row("steps", fmt.Sprintf("%d in %s", res.Steps, round(res.Elapsed)))
	row("tokens", usage(res.Usage))
	row("hooks", fmt.Sprintf("%d run, %s retried after %s", st.Hooks, number(st.Retries), count(st.Conflicts, "conflict")))
	row("actions", fmt.Sprintf("%d in %s, at most %d in one phase%s", st.Actions, count(st.Rounds, "round"), st.MaxRounds,
		unless(st.DeadLetters == 0, fmt.Sprintf("; %d failed or undelivered", st.DeadLetters))))
	row("effects", fmt.Sprintf("%d delivered, %s failed", st.EffectsDelivered, number(st.EffectsFailed)))
	row("calls", count(st.ToolCalls, "tool call"))
}

// Brief writes how a run went that is one of many: the answer, and what is not as usual.
// Verbose, it is the Summary.
func (p *Printer) Brief(res *engine.Result, l Level) {
	if l >= Verbose {
		p.Summary(res)
		return
	}
	if res.Status == phase.Waiting && res.Err == nil {
		return // its questions say more
	}
	s := p.s
	p.gap()
	if res.Reason != phase.ReasonNatural {
		p.line(s.note, "ended", 0, s.note.Render(string(res.Reason))+":", s.dim.Render(reasonText(res.Reason)))
		if res.Detail != "" {
			p.line(s.dim, "why", 0, clean(res.Detail))
		}
	}
	if res.Err != nil && res.Err.Error() != res.Detail {
		for line := range strings.Lines(res.Err.Error()) {
			p.line(s.bad, "error", 0, clean(line))
		}
	}
	p.answer(res.Text)
	if l > Quiet {
		p.line(s.dim, "took", 0, s.dim.Render(fmt.Sprintf("%s, %s tokens, %s",
			count(res.Steps, "step"), thousands(res.Usage.Total()), round(res.Elapsed))))
	}
	p.gap()
}

// answer writes the answer of a run, unless it was shown as it came.
func (p *Printer) answer(text string) {
	back := p.take()
	shown := p.shown
	p.shown = ""
	back()
	if text != shown {
		p.say(p.s.model, "answer", text)
	}
}

// remember notes what was shown of the newest answer.
func (p *Printer) remember(text string) {
	defer p.take()()
	p.shown = text
}

// usage writes how many tokens were used.
func usage(u inference.Usage) string {
	in, out := thousands(u.InputTokens)+" in", thousands(u.OutputTokens)+" out"
	if u.CachedTokens > 0 {
		in += " (" + thousands(u.CachedTokens) + " cached)"
	}
	if u.ReasoningTokens > 0 {
		out += " (" + thousands(u.ReasoningTokens) + " of thoughts)"
	}
	return in + ", " + out
}

// Text writes a text of any number of lines under one label, clean of control
// characters.
func (p *Printer) Text(label, text string) { p.say(p.s.bold, label, text) }

// say writes a text of any number of lines under one label. Lines that are too long for
// the screen are broken, so that nothing is lost.
func (p *Printer) say(look lipgloss.Style, label, text string) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		for _, part := range p.broken(cleanLine(strings.TrimRight(line, "\r\n")), 0) {
			p.line(look, label, 0, part)
			label = ""
		}
	}
}

func number(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

func unless(cond bool, text string) string {
	if cond {
		return ""
	}
	return text
}
