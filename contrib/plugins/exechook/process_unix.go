//go:build unix

package exechook

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the program into a process group of its own, which is killed as a
// whole when its context ends.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// killGroup kills what the program left behind in its group. Nothing being there is
// the usual case and no error.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
