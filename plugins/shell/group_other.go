//go:build !unix

package shell

import "os/exec"

// canReport says that a child can be given a descriptor of its own.
const canReport = false

// ownGroup does nothing: there are no process groups to kill.
func ownGroup(*exec.Cmd) {}

// killGroup kills the command alone. If it has ended it is an error.
func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }
