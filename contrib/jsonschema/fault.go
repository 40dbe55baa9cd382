package jsonschema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	upstream "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// valueFault turns what the library says of a value into a *ValueError.
func valueFault(err error) error {
	if err == nil {
		return nil
	}
	var invalid *upstream.ValidationError
	if !errors.As(err, &invalid) {
		return &SchemaError{Reason: fmt.Sprintf("the check failed with a %T", err)}
	}
	return &ValueError{Faults: faults(invalid)}
}

// schemaFault turns what the library says of a schema into a *SchemaError. A schema is
// no secret, so its text may be repeated.
func schemaFault(err error) error {
	var invalid *upstream.SchemaValidationError
	var load *upstream.LoadURLError
	var regex *upstream.InvalidRegexError
	switch {
	case errors.As(err, &load):
		return &SchemaError{Reason: fmt.Sprintf("it refers to %s, which is outside: %v", clip(local(load.URL)), errOutside)}
	case errors.As(err, &regex):
		return &SchemaError{Pointer: fragment(regex.URL), Reason: fmt.Sprintf("%s is no regular expression", clip(regex.Regex))}
	case errors.As(err, &invalid):
		var cause *upstream.ValidationError
		if !errors.As(invalid.Err, &cause) {
			break
		}
		f := faults(cause)[0]
		f.Pointer = fragment(invalid.URL) + f.Pointer
		if f.Pointer == "" {
			f.Reason = "it " + f.Reason
		}
		return &SchemaError{Pointer: f.Pointer, Reason: f.Reason}
	}
	return &SchemaError{Reason: clip(local(err.Error()))}
}

// local takes the made-up place of a schema out of a text.
func local(text string) string {
	return strings.NewReplacer(home, "", strings.TrimSuffix(home, "schema"), "").Replace(text)
}

// fragment returns the pointer of a URL.
func fragment(url string) string {
	_, pointer, _ := strings.Cut(url, "#")
	return pointer
}

// faults returns what is wrong, sorted, each once, and at least one.
func faults(e *upstream.ValidationError) []Fault {
	all := collect(e, nil)
	if len(all) == 0 {
		all = []Fault{{Reason: "does not fit"}}
	}
	slices.SortFunc(all, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Reason, b.Reason))
	})
	return slices.Compact(all)
}

// collect adds the faults of an error and those that caused it.
func collect(e *upstream.ValidationError, all []Fault) []Fault {
	at := func(reason string, tail ...string) {
		all = append(all, Fault{Pointer: pointer(slices.Concat(e.InstanceLocation, tail)), Reason: reason})
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			at("is missing", name)
		}
	case *kind.Dependency:
		for _, name := range k.Missing {
			at("is missing, and needed beside "+quote(k.Prop), name)
		}
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			at("is missing, and needed beside "+quote(k.Prop), name)
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			at("is not known", name)
		}
	case *kind.PropertyNames:
		at("has a name that does not fit", k.Property)
	case *kind.AnyOf:
		at("fits none of the alternatives")
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			at("fits more than one of the alternatives")
		} else {
			at("fits none of the alternatives")
		}
	default:
		if reason := reason(k); reason != "" {
			at(reason)
			break
		}
		for _, cause := range e.Causes {
			all = collect(cause, all)
		}
	}
	return all
}

// reason says what is wanted of a value, and nothing of what it is but its type. It is
// empty for an error that only groups others.
func reason(k upstream.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		if len(k.Want) > 1 {
			return "is " + article(k.Got) + ", not one of " + strings.Join(k.Want, ", ")
		}
		return "is " + article(k.Got) + ", not " + article(strings.Join(k.Want, ""))
	case *kind.Enum:
		return "is not one of " + listed(k.Want)
	case *kind.Const:
		return "is not " + listed([]any{k.Want})
	case *kind.Format:
		return "is not of the format " + quote(k.Want)
	case *kind.Pattern:
		return "does not match " + quote(k.Want)
	case *kind.MinLength:
		return "is shorter than " + number(k.Want, "character")
	case *kind.MaxLength:
		return "is longer than " + number(k.Want, "character")
	case *kind.MinItems:
		return "has fewer than " + number(k.Want, "item")
	case *kind.MaxItems:
		return "has more than " + number(k.Want, "item")
	case *kind.AdditionalItems:
		return "has more items than are known"
	case *kind.MinProperties:
		return "has fewer than " + number(k.Want, "member")
	case *kind.MaxProperties:
		return "has more than " + number(k.Want, "member")
	case *kind.UniqueItems:
		return "has an item twice"
	case *kind.Contains:
		return "has no item that fits"
	case *kind.MinContains:
		return "has fewer than " + number(k.Want, "item") + " that fit"
	case *kind.MaxContains:
		return "has more than " + number(k.Want, "item") + " that fit"
	case *kind.Minimum:
		return "is less than " + decimal(k.Want)
	case *kind.Maximum:
		return "is more than " + decimal(k.Want)
	case *kind.ExclusiveMinimum:
		return "is not more than " + decimal(k.Want)
	case *kind.ExclusiveMaximum:
		return "is not less than " + decimal(k.Want)
	case *kind.MultipleOf:
		return "is not a multiple of " + decimal(k.Want)
	case *kind.Not:
		return "is what it must not be"
	case *kind.FalseSchema:
		return "is not allowed"
	case *kind.RefCycle:
		return "cannot be checked: the schema refers to itself without end"
	case *kind.ContentEncoding, *kind.ContentMediaType, *kind.ContentSchema:
		return "has another content than is wanted"
	case *kind.InvalidJsonValue:
		return "is no JSON value"
	}
	return ""
}

// pointer writes a JSON Pointer (RFC 6901).
func pointer(tokens []string) string {
	var out strings.Builder
	for _, t := range tokens {
		out.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(t))
	}
	return out.String()
}

func article(typ string) string {
	switch {
	case typ == "null":
		return typ
	case slices.Contains([]string{"array", "object", "integer"}, typ):
		return "an " + typ
	default:
		return "a " + typ
	}
}

// listed writes values of a schema.
func listed(values []any) string {
	texts := make([]string, 0, len(values))
	for _, v := range values {
		text, err := json.Marshal(v)
		if err != nil {
			text = []byte("…")
		}
		texts = append(texts, string(text))
	}
	return clip(strings.Join(texts, ", "))
}

func number(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func decimal(r *big.Rat) string {
	if r == nil {
		return "the limit"
	}
	if r.IsInt() && r.Num().BitLen() <= 64 {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func quote(text string) string { return clip(strconv.Quote(text)) }

// longest is how much of one text an error repeats.
const longest = 120

// clip makes a short line of a text.
func clip(text string) string {
	text = printable(text)
	if r := []rune(text); len(r) > longest {
		return string(r[:longest-1]) + "…"
	}
	return text
}

// printable replaces what could steer a terminal or start a line.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, text)
}
