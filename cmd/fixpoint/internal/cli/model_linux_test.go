//go:build linux

package cli_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/cli"
)

// At a terminal the lines of an answer are there before the answer is, above the line
// that is typed.
func TestChatStreams(t *testing.T) {
	seen := make(chan struct{})
	s := serve(t, func(query, int) func(http.ResponseWriter, query) {
		return func(w http.ResponseWriter, q query) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprint(w, `data: {"model":"tiny","choices":[{"index":0,"delta":{"content":"These are the first words of an answer that is long."}}]}`+"\n\n")
			w.(http.Flusher).Flush()
			<-seen
			say("And these its last.")(w, q)
		}
	})
	release := sync.OnceFunc(func() { close(seen) })
	t.Cleanup(release) // or the service could not be closed
	file := specAt(t, "id: x\nmodel_id: local:tiny\nactive_hook_filter: [files]\nsections:\n  providers: {local: {protocol: openai, endpoint: '%s/v1'}}\n", s.URL)
	c := chatAt(t, 50, nil, file, "--dir", garden(t))
	c.at("x ›")
	c.types("hello\r")
	c.sees("    model    These are the first words of an\n")
	c.at("·")
	release()
	c.at("x ›")
	require.Equal(t, 1, strings.Count(c.screen(), "And these"), c.screen())
	require.Equal(t, 1, strings.Count(c.screen(), "the first words"), c.screen())
	c.types("\x04")
	c.ends(cli.ExitOK)
}
