//go:build !unix

package mcp

import "os/exec"

// ownGroup does nothing: without process groups only the program itself is killed.
func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func termGroup(*exec.Cmd) {}
