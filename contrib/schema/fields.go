package schema

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// field is a member of the object that a struct is written as.
type field struct {
	reflect.StructField
	json     string // its name in JSON
	optional bool
	quoted   bool // the value is written inside a string
}

// fields returns the fields that encoding/json knows for a struct, in their order, those
// of embedded structs after its own. Where encoding/json would drop a field without a
// word, it returns an error.
func fields(t reflect.Type, path string) ([]field, error) {
	var all []field
	taken := map[string]bool{}
	visited := map[reflect.Type]bool{}
	times := map[reflect.Type]int{} // that a struct is embedded on a level
	for level := []reflect.Type{t}; len(level) > 0; {
		var found []field
		var next []reflect.Type
		again := map[reflect.Type]int{}
		for _, s := range level {
			visited[s] = true
		}
		for _, s := range level {
			for i := range s.NumField() {
				f, inner, err := read(s.Field(i), path)
				switch {
				case err != nil:
					return nil, err
				case inner != nil && !visited[inner]:
					if again[inner]++; again[inner] == 1 {
						next = append(next, inner)
					}
				case inner != nil || f.json == "" || taken[f.json]:
				case times[s] > 1:
					return nil, fmt.Errorf("%s.%s: encoding/json drops it, since %s is embedded more than once; embed it in one place", path, f.Name, s)
				case slices.ContainsFunc(found, func(o field) bool { return o.json == f.json }):
					return nil, fmt.Errorf("%s.%s: another field is called %q too; give one of them another json name", path, f.Name, f.json)
				default:
					found = append(found, f)
				}
			}
		}
		for _, f := range found {
			taken[f.json] = true
		}
		all, level, times = append(all, found...), next, again
	}
	return all, nil
}

// read returns what a field of a struct is to encoding/json: a field, the struct that is
// embedded by it, or neither.
func read(sf reflect.StructField, path string) (f field, embedded reflect.Type, err error) {
	tag := sf.Tag.Get("json")
	name, rest, _ := strings.Cut(tag, ",")
	options := strings.Split(rest, ",")
	inner := sf.Type
	if inner.Kind() == reflect.Pointer {
		inner = inner.Elem()
	}
	switch {
	case tag == "-":
		return field{}, nil, nil
	case sf.Anonymous && name == "" && inner.Kind() == reflect.Struct:
		if sf.Type.Kind() == reflect.Pointer && !sf.IsExported() {
			return field{}, nil, fmt.Errorf("%s.%s: encoding/json cannot set an embedded pointer that is not exported; embed the struct itself", path, sf.Name)
		}
		return field{}, inner, nil
	case sf.Anonymous && !sf.IsExported() && inner.Kind() == reflect.Struct: // encoding/json reads it all the same
		return field{}, nil, fmt.Errorf("%s.%s: give it a name with a capital, or leave it out with the tag json:\"-\"", path, sf.Name)
	case !sf.IsExported():
		return field{}, nil, nil
	case strings.ContainsFunc(name, misread):
		return field{}, nil, fmt.Errorf("%s.%s: encoding/json does not take %q for a name", path, sf.Name, name)
	}
	f = field{
		StructField: sf,
		json:        cmp.Or(name, sf.Name),
		optional:    slices.Contains(options, "omitempty") || slices.Contains(options, "omitzero"),
		quoted:      slices.Contains(options, "string") && quotable(sf.Type),
	}
	if to := pointed(sf.Type); f.quoted && (to.Kind() == reflect.String || readsItself(to)) {
		return field{}, nil, fmt.Errorf("%s.%s: it would be a text that is written as JSON inside of a text; take the option string out of its json tag", path, sf.Name)
	}
	return f, nil, nil
}

// misread reports whether a name with r in it is ignored by encoding/json.
func misread(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r)
}

// quotable reports whether the option "string" means something for a type.
func quotable(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	k := t.Kind()
	return k >= reflect.Bool && k <= reflect.Float64 || k == reflect.String
}
