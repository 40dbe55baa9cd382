package enginetest

import (
	"fmt"
	"path"
	"reflect"
	"strings"
	"text/template"

	"github.com/ddd26017/fixpoint/inference"
)

// templateFuncs are the functions of script files besides those of text/template.
// ParseScript documents them. The value worked on comes last, for pipelines.
func templateFuncs() template.FuncMap {
	return template.FuncMap{
		"lines":     textLines,
		"filter":    filter,
		"first":     func(n int, v any) (any, error) { return part(v, 0, n) },
		"last":      func(n int, v any) (any, error) { return part(v, -n, n) },
		"skip":      func(n int, v any) (any, error) { return part(v, n, -1) },
		"at":        at,
		"join":      join,
		"split":     func(sep, s string) []string { return strings.Split(s, sep) },
		"trim":      strings.TrimSpace,
		"replace":   func(old, with, s string) string { return strings.ReplaceAll(s, old, with) },
		"contains":  func(sub, s string) bool { return strings.Contains(s, sub) },
		"hasPrefix": func(prefix, s string) bool { return strings.HasPrefix(s, prefix) },
		"hasSuffix": func(suffix, s string) bool { return strings.HasSuffix(s, suffix) },
		"lower":     strings.ToLower,
		"upper":     strings.ToUpper,
		"base":      path.Base,
		"dir":       path.Dir,
		"ext":       path.Ext,
		"add":       func(a, b int) int { return a + b },
		"sub":       func(a, b int) int { return a - b },
		"json":      inference.ToJSON,
		"default":   orDefault,
	}
}

// textLines returns the lines of s without the empty one behind the last break.
func textLines(s string) []string {
	s = strings.TrimSuffix(s, "\n")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

func filter(sub string, v any) ([]string, error) {
	all, err := texts(v)
	var out []string
	for _, s := range all {
		if strings.Contains(s, sub) {
			out = append(out, s)
		}
	}
	return out, err
}

func join(sep string, v any) (string, error) {
	all, err := texts(v)
	return strings.Join(all, sep), err
}

// texts prints the elements of a list.
func texts(v any) ([]string, error) {
	list := reflect.ValueOf(v)
	switch {
	case !list.IsValid():
		return nil, nil
	case list.Kind() != reflect.Slice && list.Kind() != reflect.Array:
		return nil, fmt.Errorf("a %T is not a list", v)
	}
	var out []string
	for i := range list.Len() {
		out = append(out, fmt.Sprint(list.Index(i).Interface()))
	}
	return out, nil
}

// part returns n elements of a list, or characters of a text, from index from on;
// fewer when there are not so many. A negative from counts from the end, a
// negative n means all the rest.
func part(v any, from, n int) (any, error) {
	if s, ok := v.(string); ok {
		r := []rune(s)
		from, to := bounds(len(r), from, n)
		return string(r[from:to]), nil
	}
	list := reflect.ValueOf(v)
	switch {
	case !list.IsValid():
		return []string(nil), nil
	case list.Kind() != reflect.Slice:
		return nil, fmt.Errorf("a %T is neither a list nor a text", v)
	}
	from, to := bounds(list.Len(), from, n)
	return list.Slice(from, to).Interface(), nil
}

func bounds(size, from, n int) (int, int) {
	if from < 0 {
		from += size
	}
	from = min(max(from, 0), size)
	if n < 0 || n > size-from {
		n = size - from
	}
	return from, from + n
}

// at returns the element of a list at an index from 0, "" when there is none.
func at(i int, v any) (any, error) {
	list := reflect.ValueOf(v)
	switch {
	case !list.IsValid():
		return "", nil
	case list.Kind() != reflect.Slice:
		return nil, fmt.Errorf("a %T is not a list", v)
	case i < 0 || i >= list.Len():
		return "", nil
	}
	return list.Index(i).Interface(), nil
}

func orDefault(def, v any) any {
	if truth, ok := template.IsTrue(v); !ok || !truth {
		return def
	}
	return v
}
