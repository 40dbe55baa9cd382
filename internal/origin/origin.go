package origin

import (
	"reflect"
	"runtime"
	"strings"
)

// Of returns the import path of the package that has the type of a value or of what it
// points to; "" for nil and for types that no package names. For people to read: the
// path of a package main is "main".
func Of(v any) string {
	t := reflect.TypeOf(v)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return ""
	}
	return t.PkgPath()
}

// Caller returns the import path of the package of a function on the stack: 0 is the one
// that calls Caller, 1 its caller and so on. Inlining changes nothing.
func Caller(skip int) string {
	var pcs [1]uintptr
	runtime.Callers(2+skip, pcs[:])
	frame, _ := runtime.CallersFrames(pcs[:]).Next()
	name := frame.Function // such as path/of/package.Type.Method
	last := strings.LastIndexByte(name, '/') + 1
	pkg, _, _ := strings.Cut(name[last:], ".")
	return name[:last] + strings.ReplaceAll(pkg, "%2e", ".")
}
