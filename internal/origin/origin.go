package origin

import (
	"reflect"
	"runtime"
	"strings"
)

// Of returns the import path of the package that a function was written in, or that has
// the type of another value or of what it points to; "" for nil and for types that no
// package names. For people to read: the path of a package main is "main", and a function
// literal counts as written where the compiler put it, which is the package of the caller
// when the function around it was inlined there.
func Of(v any) string {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return ""
	case reflect.Func:
		code := runtime.FuncForPC(r.Pointer())
		if code == nil {
			return ""
		}
		name := code.Name() // such as path/of/package.Type.Method
		last := strings.LastIndexByte(name, '/') + 1
		pkg, _, _ := strings.Cut(name[last:], ".")
		return name[:last] + strings.ReplaceAll(pkg, "%2e", ".")
	default:
		t := r.Type()
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		return t.PkgPath()
	}
}
