package terminal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/confirm"
)

// pendingLines is how many lines of a call an open question shows.
const pendingLines = 20

// preview returns what a question of the plugin confirm shows, and false for others.
func preview(t gate.Ticket) (shown confirm.Preview, ok bool) {
	if t.Kind != gate.Confirm || t.Params == "" || t.Params.Decode(&shown) != nil {
		return confirm.Preview{}, false
	}
	return shown, len(shown.Choices) > 0
}

// TakesAnswers reports whether a question is answered as ReadAnswer reads.
func TakesAnswers(t gate.Ticket) bool {
	_, ok := preview(t)
	return ok
}

// preview writes what a call would do, at most that many lines of each text: what it
// changes if that is known, and else its arguments. The caller has the turn.
func (p *Printer) preview(indent int, shown confirm.Preview, most int) {
	line := func(label string, parts ...string) { p.write(p.layout(p.s.dim, label, indent, parts...) + "\n") }
	if shown.Description != "" {
		line("", p.s.dim.Render(clean(shown.Description)))
	}
	if shown.DiffError != "" {
		line("", p.s.dim.Render("no diff: "+clip(clean(shown.DiffError), 200)))
	}
	if shown.Diff == "" || most == math.MaxInt {
		p.block(indent, shown.Text, most)
	}
	if shown.Diff != "" {
		p.block(indent, shown.Diff, most)
	}
}

// block writes the lines of a text.
func (p *Printer) block(indent int, text string, most int) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, l := range lines {
		if i == most {
			p.write(p.layout(p.s.plain, "", indent, p.s.dim.Render(fmt.Sprintf("│ … %d more", len(lines)-i))) + "\n")
			break
		}
		for _, part := range p.broken(marked(cleanLine(l)), indent+1) {
			p.write(p.layout(p.s.plain, "", indent, p.s.dim.Render("│"), p.diffLook(part)) + "\n")
		}
	}
}

// marked shows the blanks at the end of a line that a diff adds or removes.
func marked(line string) string {
	if !strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "-") {
		return line
	}
	text := strings.TrimRight(line, " \t")
	return text + strings.NewReplacer(" ", "·", "\t", "→").Replace(line[len(text):])
}

func (p *Printer) diffLook(line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return p.s.good.Render(line)
	case strings.HasPrefix(line, "-"):
		return p.s.bad.Render(line)
	}
	return line
}

// Offers says what can be typed to answer a question with that preview.
func Offers(shown confirm.Preview) string {
	const covers = " [call|tool|all]"
	var all []string
	for _, c := range shown.Choices {
		switch c {
		case confirm.Yes:
			all = append(all, "yes")
		case confirm.No:
			all = append(all, "no REASON")
		case confirm.Edit:
			all = append(all, "edit ARGUMENTS")
		case confirm.Always:
			var scopes []string
			for _, s := range shown.Scopes {
				scopes = append(scopes, string(s))
			}
			all = append(all, "always ["+strings.Join(scopes, "|")+"]"+covers)
		case confirm.Times:
			all = append(all, "times N"+covers)
		}
	}
	return clean(strings.Join(all, ", "))
}

// ReadAnswer reads an answer as Offers says, or as a JSON object. The first word may be
// cut to its first letter.
func ReadAnswer(t gate.Ticket, text string) (phase.Answer, error) {
	shown, _ := preview(t)
	a, err := parse(shown, text)
	if err == nil && a.Choice == confirm.Edit && a.Args == "" {
		err = errors.New("edit is followed by the arguments to run the call with, a JSON object")
	}
	if err != nil {
		return phase.Answer{}, err
	}
	return reply(a)
}

// reply is the answer as the run gets it.
func reply(a confirm.Answer) (phase.Answer, error) {
	const here = "at the terminal"
	if a.Choice == confirm.No {
		a.Reason = cmp.Or(a.Reason, here)
	}
	answer, err := a.Reply()
	if err != nil {
		return answer, err
	}
	covered := map[confirm.Covers]string{confirm.CoversCall: "this very call", confirm.CoversAll: "all calls"}[a.Covers]
	covered = cmp.Or(covered, "calls of this tool")
	switch a.Choice {
	case confirm.Yes:
		answer.Reason = here
	case confirm.Edit:
		answer.Reason = here + ", with other arguments"
	case confirm.Times:
		answer.Reason = fmt.Sprintf("%s, and for %d more: %s", here, a.N, covered)
	case confirm.Always:
		scope := map[confirm.Scope]string{confirm.ScopeThread: "the whole thread", confirm.ScopePersistent: "good"}[a.Scope]
		answer.Reason = fmt.Sprintf("%s, for %s: %s", here, cmp.Or(scope, "the whole run"), covered)
	}
	return answer, nil
}

// parse reads an answer. The arguments of an edit may be missing.
func parse(shown confirm.Preview, text string) (a confirm.Answer, err error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") {
		return confirm.Parse(inference.JSON(text))
	}
	word, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	for _, c := range []confirm.Choice{confirm.Yes, confirm.No, confirm.Edit, confirm.Always, confirm.Times} {
		if w := strings.ToLower(word); w == string(c) || w == string(c[0]) {
			a.Choice = c
		}
	}
	if word == "" {
		a.Choice = confirm.No
	}
	if !slices.Contains(shown.Choices, a.Choice) {
		return a, fmt.Errorf("%q is none of the answers: %s", clip(clean(word), 40), Offers(shown))
	}
	switch a.Choice {
	case confirm.No:
		a.Reason = rest
	case confirm.Edit:
		if rest != "" {
			a.Args, err = readArgs(rest)
		}
	case confirm.Times:
		count, covers, _ := strings.Cut(rest, " ")
		if a.N, err = strconv.Atoi(count); err != nil {
			return a, errors.New("times is followed by a number: times 3")
		}
		err = grant(&a, shown, covers)
	case confirm.Always:
		err = grant(&a, shown, rest)
	default:
		if rest != "" {
			err = fmt.Errorf("nothing goes behind %s", a.Choice)
		}
	}
	if err == nil && a.Args == "" && a.Choice == confirm.Edit {
		return a, nil
	}
	return a, cmp.Or(err, a.Validate())
}

// grant reads what an "always" or "times" is about and how long it holds.
func grant(a *confirm.Answer, shown confirm.Preview, text string) error {
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		covers, scope := confirm.Covers(word), confirm.Scope(word)
		switch {
		case slices.Contains([]confirm.Covers{confirm.CoversCall, confirm.CoversTool, confirm.CoversAll}, covers):
			a.Covers = covers
		case a.Choice == confirm.Always && slices.Contains(shown.Scopes, scope):
			a.Scope = scope
		default:
			return fmt.Errorf("%q says neither how long nor what for: %s", clip(word, 40), Offers(shown))
		}
	}
	return nil
}

// approve asks a question of the plugin confirm.
func (q *Prompt) approve(ctx context.Context, t gate.Ticket, shown confirm.Preview) (phase.Answer, error) {
	q.offers(shown)
	for {
		q.cue("answer; the first letter will do")
		text, err := q.line(ctx)
		if err != nil {
			return phase.Answer{}, err
		}
		if word := strings.ToLower(strings.TrimSpace(text)); word == "v" || word == "view" {
			q.show(t, math.MaxInt)
			q.offers(shown)
			continue
		}
		a, err := parse(shown, text)
		if err == nil && a.Choice == confirm.Edit {
			if a.Args, err = q.edited(ctx, shown, a.Args); err != nil {
				return phase.Answer{}, err
			}
			if a.Args == "" {
				continue
			}
		}
		if err != nil {
			q.complain(err.Error())
			continue
		}
		return reply(a)
	}
}

// offers writes what can be typed, all of it.
func (q *Prompt) offers(shown confirm.Preview) {
	label := "answers"
	for _, part := range q.p.broken(Offers(shown)+", view all", 2) {
		q.p.write(q.p.layout(q.p.s.dim, label, 2, q.p.s.dim.Render(part)) + "\n")
		label = ""
	}
}

// edited returns the arguments that were typed behind "edit", or else asks for them; ""
// goes back to the question.
func (q *Prompt) edited(ctx context.Context, shown confirm.Preview, typed inference.JSON) (inference.JSON, error) {
	c := q.call
	if shown.Args != "" {
		c = call{shown.Tool, string(shown.Args)}
	}
	if typed == "" {
		return q.edit(ctx, c)
	}
	if q.keys.CheckArgs != nil {
		if err := q.keys.CheckArgs(shown.Tool, typed); err != nil {
			q.complain(err.Error())
			return "", nil
		}
	}
	return typed, nil
}
