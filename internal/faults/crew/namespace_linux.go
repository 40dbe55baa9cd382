package crew

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// namespace is a network of its own, with one wire to this one. Making it needs root.
type namespace struct {
	name string // of the namespace, and the start of the names of the wire's two ends
	host string // address of the end that is here
}

func newNamespace(number int) (*namespace, error) {
	n := &namespace{name: fmt.Sprintf("fxp%d-%d", os.Getpid()%100_000, number), host: fmt.Sprintf("10.213.%d.1", number%250)}
	here, there := n.name+"a", n.name+"b"
	for _, args := range [][]string{
		{"netns", "add", n.name},
		{"link", "add", here, "type", "veth", "peer", "name", there},
		{"link", "set", there, "netns", n.name},
		{"addr", "add", n.host + "/30", "dev", here},
		{"link", "set", here, "up"},
		{"-n", n.name, "addr", "add", fmt.Sprintf("10.213.%d.2/30", number%250), "dev", there},
		{"-n", n.name, "link", "set", "lo", "up"},
		{"-n", n.name, "link", "set", there, "up"},
	} {
		if err := ip(args...); err != nil {
			return nil, errors.Join(err, n.close())
		}
	}
	return n, nil
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("crew: ip %q: %w %s", args, err, out)
	}
	return nil
}

// enter has a command run in the namespace.
func (n *namespace) enter(cmd *exec.Cmd) {
	path, err := exec.LookPath("ip")
	if err != nil {
		path = "ip" // Start says what is wrong
	}
	cmd.Args = append([]string{"ip", "netns", "exec", n.name, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = path
}

// cut takes the wire down, and heal up again.
func (n *namespace) cut() error  { return ip("link", "set", n.name+"a", "down") }
func (n *namespace) heal() error { return ip("link", "set", n.name+"a", "up") }

func (n *namespace) close() error {
	_ = ip("link", "del", n.name+"a") // it may not be there yet, or gone with the namespace
	return ip("netns", "del", n.name)
}
