package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/jsonarray"
)

// shown is a value within a sentence.
func (v Value) shown() string {
	switch {
	case !v.Known:
		return "unknown"
	case !v.Set:
		return "unset"
	case v.Hidden:
		return "(hidden)"
	case v.Cut > 0:
		return fmt.Sprintf("%s… (%d bytes)", clip(string(v.JSON), shortText), v.Cut)
	}
	return jsonText(v.JSON)
}

// String tells the explanation in sentences, one a line, below a line that says what it
// is about.
func (x Explanation) String() string {
	head := placeName(x.Key, x.Entry)
	if x.several {
		head += " of thread " + clip(x.Thread, shortText)
	}
	head += fmt.Sprintf(" at revision %d", x.Asked)
	if len(x.Entries) == 0 && x.added == nil {
		head += ": " + x.Value.shown()
	}
	lines := append([]string{head}, x.Sentences()...)
	return strings.Join(lines, "\n  ")
}

// Sentences are the explanation, without what it is about.
func (x Explanation) Sentences() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, sentence(fmt.Sprintf(format, args...))) }
	if x.Revision == 0 {
		switch {
		case x.Found > 0 || x.Value.Set:
			say("it was there when the run began, at revision %d; who wrote it is not in the recording", x.Found)
		case x.Value.Known:
			say("it had no value yet")
		default:
			say("nobody is known to have written it")
		}
	} else {
		out = append(out, authors(x.write, x.Writers, x.Value.JSON)...)
		out = append(out, x.turned()...)
		if o := x.Overwrote; o != nil {
			say("before that, %s %s %s", o.who(), verb(o.Op), o.placed())
		} else if x.Before.Set {
			say("what was there before had been found when the run began")
		}
	}
	for _, l := range x.Losers {
		out = append(out, l.sentence())
	}
	if len(x.Untold) > 0 {
		say("it may have been written since: the recording knows nothing of %s", ranges(x.Untold))
	}
	if n := x.Next; n != nil {
		say("after that, %s %s %s", n.who(), verb(n.Op), n.placed())
	}
	for _, n := range x.Notes {
		say("%s", n)
	}
	return out
}

// authors say who wrote in a commit, which made it what is.
func authors(c *commit, ws []Writer, is inference.JSON) []string {
	at := ""
	if c != nil {
		at = fmt.Sprintf(" at revision %d", c.Rev)
	}
	switch {
	case c != nil && c.reset:
		return []string{"The engine cleared it" + at + ", when the run began, as all that belongs to a run."}
	case c != nil && c.untold:
		return []string{"Somebody changed it before the run went on" + at + ": the recording knows nothing of the revisions before."}
	case len(ws) == 0:
		return []string{sentence("who wrote it" + at + " was not told")}
	}
	last := ws[len(ws)-1]
	text := last.who() + " " + verb(last.Op)
	if len(ws) == 1 && last.Value != is && last.Op != "append" {
		text += given(last.Op, last.Value)
	}
	text += at
	if where := last.where(); where != "" {
		text += ", " + where
	}
	switch {
	case last.Retry && c != nil && c.after != nil:
		text += ", in a serial retry after a conflict: " + c.after.inWords()
	case last.Retry:
		text += ", in a serial retry after a conflict"
	case last.merged && last.Hook != "":
		text += ", in the merged commit"
	}
	out := []string{sentence(text)}
	if len(ws) == 1 {
		return out
	}
	parts := make([]string, 0, len(ws))
	for i := range ws {
		if i == mostAuthors {
			parts = append(parts, count(len(ws)-i, "other"))
			break
		}
		name := strings.TrimSuffix(ws[i].who(), ",")
		parts = append(parts, name+" "+verb(ws[i].Op)+argument(ws[i].Op, ws[i].Value))
	}
	return append(out, sentence(fmt.Sprintf("the commit has %d updates of it, in this order: %s", len(ws), strings.Join(parts, "; "))))
}

// mostAuthors is how many updates of one commit are listed.
const mostAuthors = 16

// turned says from what to what it changed.
func (x Explanation) turned() []string {
	was, is := x.Before, x.Value
	switch {
	case len(x.Entries) > 0:
		return []string{sentence("the entries that changed are " + some(x.Entries))}
	case x.added != nil:
		n := lengthOf(x.added.Value)
		return []string{fmt.Sprintf("%s behind the %d that were there: %s.", upper(count(n, "element")), *x.added.At, jsonText(x.added.Value))}
	case len(x.Writers) > 0 && x.Writers[len(x.Writers)-1].Op == "append" && extends(was, is) > 0:
		list := parts([]byte(is.JSON))
		n := extends(was, is)
		more := inference.JSON(jsonarray.Join(asBytes(list[len(list)-n:])...))
		return []string{fmt.Sprintf("%s behind the %d that were there: %s.", upper(count(n, "element")), len(list)-n, jsonText(more))}
	case x.element() && was.Set != is.Set:
		if is.Set {
			return []string{"It was not in the set before."}
		}
		return []string{"It was in the set before."}
	case !is.Known && !was.Known:
		return []string{"Its values are not in the recording."}
	case !was.Set && !is.Set:
		return []string{"It had no value, and has none."}
	case !was.Set:
		return []string{"It had no value before, and became " + is.shown() + "."}
	case !is.Set:
		return []string{"It was " + was.shown() + ", and has no value since."}
	case same(was, is):
		return []string{"That did not change its value, " + is.shown() + "."}
	}
	return []string{"It changed from " + was.shown() + " to " + is.shown() + "."}
}

// element reports whether the explanation is about an element of a set.
func (x Explanation) element() bool {
	if x.Entry == "" || len(x.Writers) == 0 {
		return false
	}
	return kindOf(x.Writers[len(x.Writers)-1].Op) == setKind
}

// extends returns how many elements a list has behind those of an earlier one, and 0 if
// it does not begin with them.
func extends(was, is Value) int {
	before, after := parts([]byte(was.JSON)), parts([]byte(is.JSON))
	if len(before) > len(after) {
		return 0
	}
	for i := range before {
		if !bytes.Equal(before[i], after[i]) {
			return 0
		}
	}
	return len(after) - len(before)
}

func asBytes(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, one := range list {
		out[i] = one
	}
	return out
}

// sentence says what became of a loser.
func (l Loser) sentence() string {
	name := loserName(l.Loser, l.Hook)
	how := strings.TrimPrefix(l.how, "it ")
	text := name + " " + how
	if len(l.Wanted) > 0 {
		w := l.Wanted[len(l.Wanted)-1]
		if arg := argument(w.Op, w.Value); arg != "" {
			text += ", and wanted" + strings.TrimPrefix(arg, ":")
		}
	}
	return sentence(text + "; " + l.Fate)
}

// loserName names who lost.
func loserName(loser, hook string) string {
	if id, is := strings.CutPrefix(loser, callOwner); is {
		return "the command of tool call " + clip(id, shortText)
	}
	switch {
	case hook == "":
		return clip(loser, shortText)
	case strings.Contains(hook, "/"):
		return hookName(loser, hook)
	}
	return "plugin " + clip(loser, shortText) + ", handling action " + clip(hook, shortText) + ","
}

// why says in short how a change of the commit came about; where in the run that was,
// the commit tells.
func (c *commit) why(ch *Change) []string {
	out := make([]string, 0, 2)
	ws := c.writers(ch.Key, ch.Entry)
	switch n := len(ws); {
	case n == 0:
		out = authors(c, nil, "")
	case n > 1:
		parts := make([]string, 0, n)
		for i := range ws[:min(n, mostAuthors)] {
			parts = append(parts, ws[i].who()+argument(ws[i].Op, ws[i].Value))
		}
		text := count(n, "update") + " of it, in this order: " + strings.Join(parts, "; ")
		if c.Retry {
			text += ". It was a serial retry"
		}
		out = append(out, text+".")
	default:
		w := &ws[0]
		text := upper(w.who()) + " " + verb(w.Op)
		if w.Value != ch.Value && w.Op != "append" {
			text += given(w.Op, w.Value)
		}
		if w.Retry && c.after != nil {
			text += ", in a serial retry: " + c.after.inWords()
		} else if w.Retry {
			text += ", in a serial retry"
		}
		out = append(out, text+".")
	}
	if k := c.thread.keys[ch.Key]; k != nil && !c.reset {
		former, ok := k.before(ch.Entry, c.Rev)
		var w *Writer
		if ok {
			w = former.c.writer(ch.Key, ch.Entry)
			ok = w.Plugin != engineName || len(ws) != 1 || ws[0].Plugin != engineName // the engine on its own books
		}
		if ok {
			w.Scheduled, w.Instead, w.Tool = "", false, "" // may be told later, of the former commit
			out = append(out, "Before that, "+w.who()+" "+verb(w.Op)+" at revision "+number(w.Revision)+".")
		}
	}
	for _, l := range c.conflicts {
		if lost := l.about(ch.Key, ch.Entry); l.covers(ch.Key, ch.Entry) || len(lost) > 0 {
			out = append(out, l.loser(lost, ch.Key, ch.Entry).sentence())
		}
	}
	return out
}
