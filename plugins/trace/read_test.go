package trace_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/plugins/trace"
)

// reading is what Read makes of a text, an entry for each line.
func reading(text string) (lines []trace.Line, errs []error) {
	for l, err := range trace.Read(strings.NewReader(text)) {
		lines, errs = append(lines, l), append(errs, err)
	}
	return lines, errs
}

func TestReadLines(t *testing.T) {
	event := `{"type":"step_started","seq":1,"time":"2030-01-02T03:04:05Z","run":"r","thread":"t","agent":"a","step":2,"revision":9}` + "\n"
	started, err := engine.UnmarshalEvent([]byte(event))
	require.NoError(t, err)

	lines, errs := reading(`{"type":"trace","version":1,"module":"(devel)"}` + "\n\n" + event + `{"type":"dropped","count":3}` + "\r\n")
	require.Equal(t, []error{nil, nil, nil}, errs)
	require.Equal(t, []trace.Line{{Version: 1, Number: 1}, {Event: started, Number: 3}, {Dropped: 3, Number: 4}}, lines)

	lines, errs = reading(event)
	require.Equal(t, []error{nil}, errs)
	require.Equal(t, []trace.Line{{Event: started, Number: 1}}, lines, "without a header")

	lines, errs = reading(event + "no line\n" + event)
	require.Len(t, errs, 3)
	require.EqualError(t, errs[1], "trace: line 2: invalid character 'o' in literal null (expecting 'u')")
	require.Equal(t, trace.Line{Event: started, Number: 3}, lines[2], "reading goes on")

	lines, errs = reading(event + event[:40])
	require.Len(t, errs, 2)
	require.ErrorIs(t, errs[1], io.ErrUnexpectedEOF)
	var at *trace.LineError
	require.True(t, errors.As(errs[1], &at))
	require.Equal(t, int64(len(event)), at.At)
	require.Equal(t, trace.Line{Number: 2}, lines[1])

	_, errs = reading(`{"type":"trace","version":2,"news":true}` + "\n" + event)
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], trace.ErrVersion)
	for _, bad := range []string{`{"type":"trace","version":0}`, `{"type":"trace"}`, `{"type":"dropped","count":0}`, `{"type":"dropped","count":"x"}`, `{"type":"trace","version":1,"x":1}`} {
		_, errs = reading(bad + "\n")
		require.Len(t, errs, 1)
		require.Error(t, errs[0], bad)
	}
}

// FuzzRead reads anything: line by line or in one, what is read is the same, numbers
// rise, and it ends.
func FuzzRead(f *testing.F) {
	f.Add(`{"type":"trace","version":1}` + "\n" + `{"type":"dropped","count":1}` + "\n" + `{"type":"warning","message":"x"}` + "\n{")
	f.Add("\n\n\r\n{}\n")
	f.Add("\n0")
	f.Fuzz(func(t *testing.T, text string) {
		whole, errs := reading(text)
		last := 0
		for i, l := range whole {
			require.Greater(t, l.Number, last)
			last = l.Number
			require.LessOrEqual(t, last, strings.Count(text, "\n")+1)
			var at *trace.LineError
			if errors.As(errs[i], &at) {
				require.True(t, at.At == 0 || text[at.At-1] == '\n')
				require.Equal(t, last, at.Line)
				if errors.Is(errs[i], io.ErrUnexpectedEOF) && at.At > 0 {
					before, _ := reading(text[:at.At])
					require.Equal(t, whole[:i], append([]trace.Line{}, before...), "what follows can be read later")
				}
			}
		}
	})
}
