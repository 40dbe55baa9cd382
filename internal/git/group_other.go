//go:build !unix

package git

import (
	"os"
	"os/exec"
)

// alone does nothing: there are no process groups here.
func alone(*exec.Cmd) {}

// kill ends the program.
func kill(p *os.Process) error { return p.Kill() }
