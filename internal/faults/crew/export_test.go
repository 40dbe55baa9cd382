//go:build unix

package crew

import "time"

// Watch is the watch, for tests.
type Watch struct{ *watch }

// NewWatch returns a watch.
func NewWatch(lease time.Duration) Watch { return Watch{newWatch(lease)} }

// See takes down a line of that kind.
func (w Watch) See(kind, worker, call, id string, at time.Duration) {
	w.see(line{Kind: kind, Worker: worker, Thread: "thread", Call: call, ID: id, Time: 1 + int64(at)})
}

// Result returns what was found.
func (w Watch) Result() (repeated, duplicates, takenUp, late int, orphaned time.Duration, err error) {
	return w.repeated, w.duplicates, w.takenUp, w.late, w.orphaned, w.err()
}

// Proxy is the proxy, for tests.
type Proxy struct{ *proxy }

// NewProxy returns a proxy to an address.
func NewProxy(address string) (Proxy, error) {
	p, err := newProxy("127.0.0.1:0", "tcp", address)
	return Proxy{p}, err
}

// Addr returns where it listens.
func (p Proxy) Addr() string { return p.listener.Addr().String() }

// Cut cuts, Heal heals, and Close ends it.
func (p Proxy) Cut()         { p.cut() }
func (p Proxy) Heal()        { p.heal() }
func (p Proxy) Close() error { return p.close() }
