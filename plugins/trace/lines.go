package trace

import (
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/internal/tagged"
)

// header is the first line of a file whose first event is of that time, so that the same
// events give the same file.
func header(at time.Time) []byte {
	h := head{Version: Version, Module: moduleVersion()}
	if text, err := at.MarshalText(); err == nil {
		h.Time = string(text)
	}
	return tag(headLine, h)
}

// droppedEvents is the line in the place of n events.
func droppedEvents(n int) []byte { return tag(droppedLine, dropped{Count: n}) }

func tag(typ string, v any) []byte {
	line, err := tagged.Marshal(typ, v)
	if err != nil { // structs of texts and numbers can be written
		panic(err)
	}
	return append(line, '\n')
}

// module is what the trace is part of.
const module = "github.com/ddd26017/fixpoint"

// moduleVersion is that of this module in the program, "" if it was not released.
var moduleVersion = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module && m.Replace == nil && strings.HasPrefix(m.Version, "v") && !strings.Contains(m.Version, "+dirty") {
			return m.Version
		}
	}
	return ""
})
