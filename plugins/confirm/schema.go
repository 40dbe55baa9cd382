package confirm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
)

// offer is what a ticket offers besides yes, no, always and times.
type offer struct {
	edits    bool // the arguments may be edited
	persists bool // there is a place for what holds across runs
}

func (o offer) choices() []Choice {
	if o.edits {
		return []Choice{Yes, No, Edit, Always, Times}
	}
	return []Choice{Yes, No, Always, Times}
}

func (o offer) scopes() []Scope {
	if o.persists {
		return []Scope{ScopeRun, ScopeThread, ScopePersistent}
	}
	return []Scope{ScopeRun, ScopeThread}
}

// suits returns what is wrong with an answer to a ticket that offers o.
func (o offer) suits(a Answer) error {
	switch {
	case a.Choice == Edit && !o.edits:
		return fmt.Errorf("%w: this tool does not take edited arguments; say yes or no to those shown", ErrAnswer)
	case a.Scope == ScopePersistent && !o.persists:
		return fmt.Errorf("%w: there is no place to keep a persistent approval; use the scope run or thread", ErrAnswer)
	}
	return nil
}

// schema is the JSON Schema of the answers to a ticket.
func (o offer) schema() inference.JSON {
	const covers = `,"covers":{"enum":["call","tool","all"]}`
	scopes := `"run","thread"`
	if o.persists {
		scopes += `,"persistent"`
	}
	one := func(choice Choice, members, required string) string {
		return `{"type":"object","properties":{"choice":{"const":"` + string(choice) + `"}` + members +
			`},"required":["choice"` + required + `],"additionalProperties":false}`
	}
	forms := []string{one(Yes, "", ""), one(No, `,"reason":{"type":"string"}`, "")}
	if o.edits {
		forms = append(forms, one(Edit, `,"args":{"type":"object"}`, `,"args"`))
	}
	forms = append(forms,
		one(Always, `,"scope":{"enum":[`+scopes+`]}`+covers, ""),
		one(Times, `,"n":{"type":"integer","minimum":1,"maximum":`+strconv.Itoa(MostTimes)+`}`+covers, `,"n"`))
	return inference.JSON(`{"oneOf":[` + strings.Join(forms, ",") + `]}`)
}

// Schemas returns a checker for Config.Schemas that knows the schemas of this plugin's
// tickets and asks next about all others. Without a next it refuses those. An engine
// that has a checker of JSON Schemas does not need it.
func Schemas(next engine.SchemaChecker) engine.SchemaChecker {
	offers := map[inference.JSON]offer{}
	for _, o := range []offer{{}, {edits: true}, {persists: true}, {edits: true, persists: true}} {
		canonical, _ := o.schema().Canonical() // it is JSON
		offers[canonical] = o
	}
	return engine.SchemaCheckerFunc(func(schema, value inference.JSON) error {
		canonical, err := schema.Canonical()
		o, own := offers[canonical]
		switch {
		case err == nil && own:
			a, err := Parse(value)
			if err == nil {
				err = o.suits(a)
			}
			return err
		case next != nil:
			return next.CheckSchema(schema, value)
		default:
			return errors.New("confirm: this is no schema of confirm; give confirm.Schemas a checker for those of others")
		}
	})
}
