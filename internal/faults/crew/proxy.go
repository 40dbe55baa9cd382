//go:build unix

package crew

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// proxy is the way of one worker to the server. Cut off, it lets nothing through in either
// direction, and tells nobody: what was sent waits, as in a network that drops packets
// which are then sent again.
type proxy struct {
	listener net.Listener
	network  string
	address  string

	mu    sync.Mutex
	open  chan struct{} // closed while data may pass
	conns map[net.Conn]bool
	done  bool
	all   sync.WaitGroup
}

// newProxy listens on an address, "127.0.0.1:0" for instance, for connections to a server.
func newProxy(listen, network, address string) (*proxy, error) {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("crew: %w", err)
	}
	p := &proxy{listener: l, network: network, address: address, open: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(p.open)
	p.all.Go(p.serve)
	return p, nil
}

func (p *proxy) serve() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.all.Go(func() { p.forward(in) })
	}
}

// cut lets nothing pass from now on. What the proxy has read by then and not yet written
// waits, too.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.passable() {
		p.open = make(chan struct{})
	}
}

// heal lets data pass again, those that wait first.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.passable() {
		close(p.open)
	}
}

func (p *proxy) passable() bool {
	select {
	case <-p.open:
		return true
	default:
		return false
	}
}

func (p *proxy) gate() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// keep notes a connection, to be closed in the end.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		_ = c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *proxy) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = c.Close()
	delete(p.conns, c)
}

func (p *proxy) forward(in net.Conn) {
	if !p.keep(in) {
		return
	}
	defer p.drop(in)
	<-p.gate()
	out, err := (&net.Dialer{}).DialContext(context.Background(), p.network, p.address)
	if err != nil || !p.keep(out) {
		return
	}
	defer p.drop(out)
	var both sync.WaitGroup
	both.Go(func() { p.copy(out, in) })
	both.Go(func() { p.copy(in, out) })
	both.Wait()
}

// copy passes on what is read, and the end of it, when data may pass.
func (p *proxy) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		<-p.gate()
		if n > 0 {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				_ = from.Close()
				return
			}
		}
		if errors.Is(err, io.EOF) {
			if half, ok := to.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
				return
			}
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

// close ends all connections.
func (p *proxy) close() error {
	err := p.listener.Close()
	p.heal()
	p.mu.Lock()
	p.done = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.all.Wait()
	return err
}
