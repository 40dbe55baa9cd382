//go:build !unix

package exechook

import "os/exec"

// ownGroup does nothing: without process groups only the program itself is killed when
// its context ends.
func ownGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) {}
