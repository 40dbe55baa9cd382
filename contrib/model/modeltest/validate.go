package modeltest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/inference/resilient"
)

// validate says what is missing, so that no check is left out by mistake.
func (p Provider) validate() error {
	var errs []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("modeltest: "+format, args...))
		}
	}
	need(p.New != nil, "Provider.New is nil")
	need(p.Model != "", "Provider.Model is empty")
	need(p.Streams != nil && p.Whole != nil && p.Stream != nil, "Provider needs Streams, Whole and Stream")
	need(p.Golden != "", "Provider.Golden is empty")
	for _, class := range NeededClasses {
		need(p.has(class), "Provider.Failures has none of class %q", class.String())
	}
	need(slices.ContainsFunc(p.Failures, func(f Failure) bool { return strings.Contains(f.Reply.Body, Key) }),
		"Provider.Failures has none that repeats Key, as services do with a key that they do not accept")
	need(p.has(resilient.ContentFiltered) || !p.Lacks.Filtered,
		"a service must be able to filter, by a Failure of class %q or by an answer's end", resilient.ContentFiltered.String())
	for field := range full.Fields() {
		place, ok := p.Fields[field]
		need(ok, "Provider.Fields does not say what becomes of %q", field)
		need(!place.Refused || !p.Together.IsZero(), "%q is refused, so Provider.Together must say what may be set", field)
	}
	for _, effort := range efforts {
		_, ok := p.Efforts[effort]
		need(ok, "Provider.Efforts does not say what becomes of %q", effort)
	}
	for _, name := range PartNames {
		fate := p.Parts[name]
		need(fate == Sent || fate == Refused, "Provider.Parts does not say what becomes of %q", name)
	}
	return errors.Join(errs...)
}
