package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strconv"

	"github.com/ddd26017/fixpoint/contrib/jsonschema"
	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

// reading is a walk over a value that fits the schema, for what encoding/json makes of it.
type reading struct {
	*document
	leaves bool // look at what encoding/json itself finds, too
	faults []jsonschema.Fault
}

// losses returns what encoding/json would change without a word, or refuse without a place.
func (d *document) losses(tree *jsonpos.Node) []jsonschema.Fault {
	r := reading{document: d}
	r.value(d.of, tree, "")
	return r.faults
}

// unreadable returns where a value is none of its type: a number with too many digits, or
// a text that the type itself refuses.
func (d *document) unreadable(tree *jsonpos.Node) []jsonschema.Fault {
	r := reading{document: d, leaves: true}
	r.value(d.of, tree, "")
	return r.faults
}

func (r *reading) fault(at, format string, args ...any) {
	r.faults = append(r.faults, jsonschema.Fault{Pointer: at, Reason: clip(fmt.Sprintf(format, args...))})
}

// value looks at the value at a pointer.
func (r *reading) value(t reflect.Type, n *jsonpos.Node, at string) {
	if len(r.faults) > shown*shown || n.Kind == jsonpos.Null && t.Kind() == reflect.Pointer {
		return
	}
	t = pointed(t)
	switch k := t.Kind(); {
	case known[t] != nil || readsItself(t) || isBytes(t):
		r.leaf(t, n, at)
	case k == reflect.Interface:
		r.digits(n, at)
	case k == reflect.Struct:
		for _, m := range n.Members {
			for _, f := range r.fields[t] {
				if f.json == m.Name {
					r.member(f, m.Value, at+"/"+escaped(m.Name))
				}
			}
		}
	case k == reflect.Map:
		r.keys(t.Key(), n, at)
		for _, m := range n.Members {
			r.value(t.Elem(), m.Value, at+"/"+escaped(m.Name))
		}
	case k == reflect.Slice || k == reflect.Array:
		for i, item := range n.Items {
			r.value(t.Elem(), item, at+"/"+strconv.Itoa(i))
		}
	default:
		r.leaf(t, n, at)
	}
}

func (r *reading) member(f field, n *jsonpos.Node, at string) {
	if !f.quoted {
		r.value(f.Type, n, at)
	} else if n.Kind == jsonpos.String {
		inner := reading{document: r.document, leaves: true}
		inner.leaf(pointed(f.Type), jsonpos.Parse([]byte(n.Text)), at)
		r.faults = append(r.faults, inner.faults...)
	}
}

// leaf looks at a value that encoding/json, or a method of the type's, reads as a whole.
func (r *reading) leaf(t reflect.Type, n *jsonpos.Node, at string) {
	if !r.leaves {
		return
	}
	check := jsonpos.Check{Root: n}
	check.Fit(t, n, nil, jsonpos.Rules{Null: true})
	for _, f := range check.Faults() {
		r.fault(at, "%s", f.Msg)
	}
}

// keys looks at the names of a map, of which encoding/json makes keys.
func (r *reading) keys(t reflect.Type, n *jsonpos.Node, at string) {
	if t.Kind() == reflect.String && !readsItself(t) {
		return
	}
	one := reflect.MapOf(t, reflect.TypeFor[struct{}]())
	taken := reflect.MakeMap(one)
	for _, m := range n.Members {
		text, err := json.Marshal(map[string]struct{}{m.Name: {}})
		got := reflect.New(one)
		if err == nil {
			err = json.Unmarshal(text, got.Interface())
		}
		if err != nil {
			r.fault(at+"/"+escaped(m.Name), "is no key: %v", err)
			continue
		}
		for _, key := range got.Elem().MapKeys() {
			if taken.MapIndex(key).IsValid() {
				r.fault(at+"/"+escaped(m.Name), "is the key of another member too, written in another way; keep one")
			}
			taken.SetMapIndex(key, reflect.ValueOf(struct{}{}))
		}
	}
}

// digits looks for whole numbers that a float64 has no room for: identifiers, most likely,
// of which the function would see others.
func (r *reading) digits(n *jsonpos.Node, at string) {
	if whole, ok := new(big.Int).SetString(n.Text, 10); n.Kind == jsonpos.Number && ok && whole.BitLen() > 53 {
		if _, exact := new(big.Float).SetInt(whole).Float64(); exact != big.Exact {
			r.fault(at, "has more digits than are kept of it; write it as a string, found %s", n.Text)
		}
	}
	for i, item := range n.Items {
		r.digits(item, at+"/"+strconv.Itoa(i))
	}
	for _, m := range n.Members {
		r.digits(m.Value, at+"/"+escaped(m.Name))
	}
}
