package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// ErrAddress is returned for an address that is not of the loopback interface.
var ErrAddress = errors.New("the inspector is for this machine only: name an address such as 127.0.0.1:0, [::1]:8080 or localhost:8080")

// Listen listens on an address of the loopback interface; port 0 is any that is free.
// The error is ErrAddress for another one, or says why the port cannot be had.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || host != "localhost" && !loopback(host) {
		return nil, fmt.Errorf("%w, not %q", ErrAddress, addr)
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("the inspector cannot listen on %s: %w", addr, err)
	}
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("%w; %s leads to %s here", ErrAddress, addr, l.Addr()), l.Close())
	}
	return l, nil
}

// farewell is how long requests under way may take once the server is to end.
const farewell = 2 * time.Second

// Serve serves a source until ctx ends, and then ends all that it began. It closes the
// listener. The error says why it ended before.
func Serve(ctx context.Context, l net.Listener, source *Source) error {
	server := &http.Server{
		Handler:           Handler(source),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    1 << 16,
		ErrorLog:          log.New(io.Discard, "", 0), // of clients that went away; the terminal is for the user
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	err := server.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // a page that takes nothing
	}
	<-ended
	return err
}
