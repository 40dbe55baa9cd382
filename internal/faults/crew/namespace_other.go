//go:build unix && !linux

package crew

import (
	"errors"
	"os/exec"
)

var errNoNamespaces = errors.New("crew: this system has no network namespaces")

type namespace struct{ host string }

func newNamespace(int) (*namespace, error) { return nil, errNoNamespaces }

func (n *namespace) enter(*exec.Cmd) {}
func (n *namespace) cut() error      { return errNoNamespaces }
func (n *namespace) heal() error     { return errNoNamespaces }
func (n *namespace) close() error    { return nil }
