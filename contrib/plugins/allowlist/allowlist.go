package allowlist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// Name is the plugin's name.
const Name = "allowlist"

// New returns the plugin. It holds nothing and is safe for concurrent use.
func New() engine.Plugin {
	return engine.NewPlugin(Name, func(r *engine.Registrar) error {
		r.Section(Section)
		r.Gate(gate.Func(check))
		return nil
	})
}

func check(_ context.Context, pc *phase.Context) (gate.Decision, error) {
	s, call := Section.Get(pc), pc.Call()
	for _, shell := range s.shells() {
		if shell.Tool != call.Name {
			continue
		}
		lines, unsure := shell.lines(call.Args)
		verdict, why := Unsure, ""
		for _, line := range lines {
			if verdict, why = s.Judge(line); verdict == Denied {
				return gate.Block("the command line is denied: " + why), nil
			}
		}
		if unsure == nil && verdict == Approved {
			return gate.Approve().Because(why), nil
		}
		if unsure != nil {
			why = unsure.Error()
		}
		return gate.Abstain().Because("not approved: " + why), nil
	}
	return gate.Abstain(), nil
}

// lines returns every text that the tool may take for its command line, and why it is
// not certain which one it does, or what else the call asks for. Tools written in Go take
// a name in any case, and of several the last.
func (t Shell) lines(args inference.JSON) (lines []string, unsure error) {
	dec := json.NewDecoder(strings.NewReader(string(args)))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("the arguments are no object")
	}
	for dec.More() {
		var value any
		name, err := dec.Token()
		if err == nil {
			err = dec.Decode(&value)
		}
		if err != nil {
			return lines, err
		}
		text, isText := value.(string)
		switch {
		case strings.EqualFold(fmt.Sprint(name), t.Argument):
			if name != t.Argument || !isText || len(lines) > 0 {
				unsure = fmt.Errorf("the argument %s is no text, is misspelt or is there twice", t.Argument)
			}
			lines = append(lines, text)
		case !slices.Contains(t.Others, fmt.Sprint(name)):
			unsure = fmt.Errorf("the argument %s may change what the command line does", name)
		}
	}
	if len(lines) == 0 && unsure == nil {
		unsure = fmt.Errorf("there is no argument %s", t.Argument)
	}
	return lines, unsure
}
