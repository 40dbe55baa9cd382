//go:build unix

package shell

import (
	"os/exec"
	"syscall"
)

// canReport says that a child can be given a descriptor of its own.
const canReport = true

// ownGroup has the command start in a process group of its own.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the command and everything in its process group. If nothing is left
// there it is an error.
func killGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
