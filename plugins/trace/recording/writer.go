package recording

import (
	"fmt"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
)

// Writer is somebody who wrote a key, and where.
type Writer struct {
	Revision  uint64
	Run       string
	Plugin    string // "engine" for the engine itself; "" for the command of a tool call
	Hook      string
	Action    string // that was handled, in place of a hook
	Scheduled string // plugin that had scheduled it
	Instead   bool   // it is the plugin of a gate, which replaced the action
	Call      string // tool call whose command it is, by the model's id
	Tool      string
	Step      int
	Phase     string // "" outside phases
	Round     int    // of actions; 0 for none
	Retry     bool   // it was called again after a conflict, and committed alone
	Op        string
	Value     inference.JSON // argument of the update

	merged  bool
	aside   bool // nobody called it: the command came from outside
	key     string
	outside bool
}

// writers returns who wrote the key or entry in the commit, in order.
func (c *commit) writers(key, entry string) (out []Writer) {
	for i := range c.Writes {
		if w := &c.Writes[i]; w.Key == key && w.touches(entry) {
			out = append(out, c.writerOf(w))
		}
	}
	return out
}

// touches reports whether the write is to an entry, or to the key as a whole.
func (w *Write) touches(entry string) bool {
	if entry == "" || w.Entry == "" || w.Entry == entry {
		return true
	}
	return w.several() && strings.Contains(" "+w.Entry[1:len(w.Entry)-1]+" ", " "+entry+" ")
}

// several reports whether the entry stands for several elements of a set.
func (w *Write) several() bool {
	return kindOf(w.Op) == setKind && strings.HasPrefix(w.Entry, "[") && strings.HasSuffix(w.Entry, "]")
}

// writer is the last who wrote the key or entry in the commit.
func (c *commit) writer(key, entry string) *Writer {
	if all := c.writers(key, entry); len(all) > 0 {
		return &all[len(all)-1]
	}
	w := c.writerOf(&Write{Key: key, Entry: entry})
	if c.reset {
		w.Plugin, w.Op = engineName, "reset"
	}
	return &w
}

func (c *commit) writerOf(w *Write) Writer {
	out := Writer{Revision: c.Rev, Run: c.Run, Plugin: w.Plugin, Hook: w.Hook, Step: c.Step, Phase: c.Phase, Round: c.Round,
		Retry: c.Retry, Op: w.Op, Value: w.Value, key: w.Key, merged: c.merges(), outside: c.run.alone}
	switch id, is := strings.CutPrefix(w.Plugin, callOwner); {
	case is:
		out.Plugin, out.Call = "", id
		for _, b := range c.bodies {
			if b.Call.Call == id {
				out.Tool = b.Tool
			}
		}
	case c.Round > 0 && w.Hook != "":
		out.Action, out.Hook, out.Instead = w.Hook, "", c.instead == w.Plugin && c.instead != ""
		if len(c.schedules) == 1 {
			out.Scheduled = c.schedules[0]
		}
	case w.Hook == "" && w.Plugin != engineName:
		out.aside = len(c.Writes) > 0 && c.Writes[0].Plugin != engineName
	}
	return out
}

// merges reports whether the commit has commands of several hooks.
func (c *commit) merges() bool {
	for i := range c.Writes {
		if c.Writes[i].Hook != c.Writes[0].Hook {
			return true
		}
	}
	return false
}

// verb says what an update did.
func verb(op string) string {
	switch op {
	case "append":
		return "appended to it"
	case "replace":
		return "replaced it"
	case "put":
		return "put it"
	case "delete":
		return "deleted it"
	case "add":
		return "added it"
	case "remove":
		return "removed it"
	case "reset":
		return "reset it"
	case "import":
		return "imported it"
	}
	return "wrote it"
}

// argument is an update's argument behind its verb.
func argument(op string, v inference.JSON) string {
	switch op {
	case "delete", "add", "remove", "reset", "import":
		return ""
	}
	if v == "" {
		return ""
	}
	a, is := alteredValue([]byte(v))
	switch {
	case is && a.Hidden:
		return ": (hidden)"
	case is:
		return fmt.Sprintf(": %s (%d bytes)", quoted(a.Cut.Begin, shortText), a.Cut.Bytes)
	}
	return ": " + jsonText(v)
}

// given is an argument that is not the value that came of it. An object is no number
// that was added or word that was appended, and would not say much.
func given(op string, v inference.JSON) string {
	if strings.HasPrefix(string(v), "{") {
		return ""
	}
	return strings.Replace(argument(op, v), ":", " with", 1)
}

// who names the writer.
func (w *Writer) who() string {
	plugin := clip(w.Plugin, shortText)
	switch {
	case w.Call != "":
		call := "tool call " + clip(w.Call, shortText) + callTool(w.Tool)
		if w.key == callsKey {
			return "the engine, about " + call + ","
		}
		return "the command of " + call
	case w.Plugin == engineName:
		return "the engine"
	case w.Plugin == "":
		return "somebody"
	case w.Action != "" && w.Instead:
		return "the gate of plugin " + plugin + ", in place of action " + clip(w.Action, shortText) + ","
	case w.Action != "":
		by := ""
		if w.Scheduled != "" && w.Scheduled != w.Plugin {
			by = ", which " + clip(w.Scheduled, shortText) + " had scheduled,"
		}
		return "plugin " + plugin + ", handling action " + clip(w.Action, shortText) + strings.TrimSuffix(by, ",") + ","
	case w.Hook != "":
		return hookName(w.Plugin, w.Hook)
	case w.aside && w.outside:
		return "plugin " + plugin + ", from outside any run,"
	case w.aside:
		return "plugin " + plugin + ", from outside the run,"
	}
	if w.Step > 0 {
		return "plugin " + plugin + ", when the agent changed,"
	}
	return "plugin " + plugin + ", when it was activated,"
}

func callTool(tool string) string {
	if tool == "" {
		return ""
	}
	return " (" + clip(tool, shortText) + ")"
}

// hookName names a hook, whose id begins with its plugin's name.
func hookName(plugin, hook string) string {
	if strings.HasPrefix(hook, plugin+"/") {
		return "hook " + clip(hook, shortText)
	}
	return "hook " + clip(hook, shortText) + " of plugin " + clip(plugin, shortText)
}

// where says where in its run somebody wrote.
func (w *Writer) where() string {
	in := ""
	switch {
	case w.Phase != "":
		in = clip(w.Phase, shortText)
		if w.Round > 0 {
			in = fmt.Sprintf("round %d of %s", w.Round, in)
		}
		if w.Step > 0 && w.Phase != "run_start" && w.Phase != "run_end" {
			in += fmt.Sprintf(" of step %d", w.Step)
		}
		return "in " + in
	case w.outside:
		return ""
	case w.aside && w.Step > 0:
		return fmt.Sprintf("during step %d", w.Step)
	case w.Step > 0:
		return fmt.Sprintf("in step %d, between phases", w.Step)
	}
	return "before the first step"
}

// placed is the revision, where it was written, and whether in a retry.
func (w *Writer) placed() string {
	text := "at revision " + number(w.Revision)
	if where := w.where(); where != "" {
		text += ", " + where
	}
	if w.Retry {
		text += ", in a serial retry"
	}
	return text
}
