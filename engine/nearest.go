package engine

import "github.com/ddd26017/fixpoint/effects"

// nearest returns the known name that name was most likely meant to be, or "".
func nearest(name string, known []string) string { return effects.Nearest(name, known) }
