package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
)

// keyword is a struct tag that is a keyword of JSON Schema.
type keyword struct {
	name string
	on   []string // the types that it says something about
	read func(text string) (any, error)
}

var (
	numbers = []string{"integer", "number"}
	texts   = []string{"string"}
	lists   = []string{"array"}
	objects = []string{"object"}
)

var keywords = []keyword{
	{"minimum", numbers, readNumber}, {"maximum", numbers, readNumber}, {"multipleOf", numbers, readNumber},
	{"exclusiveMinimum", numbers, readNumber}, {"exclusiveMaximum", numbers, readNumber},
	{"minLength", texts, readCount}, {"maxLength", texts, readCount}, {"pattern", texts, readText}, {"format", texts, readText},
	{"minItems", lists, readCount}, {"maxItems", lists, readCount}, {"uniqueItems", lists, readBool},
	{"minProperties", objects, readCount}, {"maxProperties", objects, readCount},
}

func readText(text string) (any, error) { return text, nil }
func readBool(text string) (any, error) { return strconv.ParseBool(text) }

func readCount(text string) (any, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	return integer(int64(n)), err
}

func readNumber(text string) (v any, err error) {
	if err = decodeWhole(text, &v); err == nil {
		if _, ok := v.(json.Number); !ok {
			err = fmt.Errorf("%s is no number", text)
		}
	}
	return v, err
}

func decodeWhole(text string, v *any) error {
	if !json.Valid([]byte(text)) {
		return fmt.Errorf("%s is not JSON", text)
	}
	return decodeNumbers(inference.JSON(text), v)
}

// tags adds to the schema of a field what its tags say.
func (d *derivation) tags(f field, p part, path string) error {
	if text, ok := f.Tag.Lookup("description"); ok {
		if p["description"] == nanoseconds {
			text += " (" + nanoseconds + ")"
		}
		p["description"] = text
	}
	for _, k := range keywords {
		text, ok := f.Tag.Lookup(k.name)
		if !ok {
			continue
		}
		target, _ := within(p, k.on)
		value, err := k.read(text)
		switch {
		case target == nil:
			return fmt.Errorf("%s: the tag %s says nothing about a %s", path, k.name, f.Type)
		case err != nil:
			return fmt.Errorf("%s: the tag %s: %w", path, k.name, err)
		}
		target[k.name] = value
	}
	if text, ok := f.Tag.Lookup("enum"); ok {
		if err := d.enum(f, text, p, path); err != nil {
			return err
		}
	}
	text, ok := f.Tag.Lookup("default")
	if !ok {
		return nil
	}
	value := any(text)
	if typeOf(p) != "string" {
		if err := decodeWhole(text, &value); err != nil {
			return fmt.Errorf("%s: the tag default: %w", path, err)
		}
	}
	p["default"] = value
	d.samples = append(d.samples, sample{path + ": the tag default", value, p, f.Type, f.quoted})
	return nil
}

// enum adds the values that a tag has, separated by commas.
func (d *derivation) enum(f field, text string, p part, path string) error {
	target, levels := within(p, []string{"string", "integer", "number", "boolean"})
	if target == nil {
		return fmt.Errorf("%s: the tag enum is for texts, numbers and truth values, and lists and maps of them", path)
	}
	var all []any
	for word := range strings.SplitSeq(text, ",") {
		value := any(word)
		if typeOf(target) != "string" {
			if err := decodeWhole(word, &value); err != nil {
				return fmt.Errorf("%s: the tag enum: %w", path, err)
			}
		}
		all = append(all, value)
	}
	into := pointed(f.Type)
	for range levels {
		into = pointed(into.Elem())
	}
	for _, v := range all {
		d.samples = append(d.samples, sample{path + ": the tag enum", v, target, into, f.quoted})
	}
	if _, null := target["type"].([]any); null {
		all = append(all, nil)
	}
	target["enum"] = all
	return nil
}

// within returns the schema that a keyword for some types is about: p itself, or that of
// the items or values in it, so many levels down. It returns nil if there is none.
func within(p part, types []string) (target part, levels int) {
	for p != nil && !slices.Contains(types, typeOf(p)) {
		p = values(p)
		levels++
	}
	return p, levels
}
