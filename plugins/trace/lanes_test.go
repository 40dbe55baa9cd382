package trace_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/plugins/trace"
)

// Capability B4. The picture shows hooks that ran at the same time on lanes of their own
// for as long as they did, the serial retry of one that lost a conflict with an arrow
// from its first try, the rounds of the cascade, and commits with their revisions.
func TestPictureOfAPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTrace()
		res := run(t, config(t, tr, enginetest.Say("done")), t.Context(), engine.AgentSpec{ID: "clerk"})
		require.NoError(t, res.Err)
		require.NoError(t, tr.Close(t.Context()))
		spans := checkChrome(t, tr.chrome.Bytes())
		ms := func(name string) (from, to float64, tid uint32) {
			i := slices.IndexFunc(spans, func(s entry) bool { return s.Name == name })
			require.GreaterOrEqual(t, i, 0, name)
			return *spans[i].Ts / 1000, (*spans[i].Ts + *spans[i].Dur) / 1000, spans[i].Tid
		}
		const slack = 2 // the engine may take a moment
		for name, want := range map[string]float64{
			"busy/step_start/0": 4, "busy/step_start/1": 4, "busy/step_start/1, retry": 4, "busy/before_inference/0": 30, "busy/before_inference/1": 10,
		} {
			from, to, _ := ms(name)
			require.InDelta(t, want, to-from, slack, name)
		}
		together := func(a, b string) {
			fromA, _, laneA := ms(a)
			fromB, _, laneB := ms(b)
			require.InDelta(t, fromA, fromB, slack, "%s and %s begin at the same time", a, b)
			require.NotEqual(t, laneA, laneB, "on lanes of their own")
		}
		together("busy/step_start/0", "busy/step_start/1")
		together("busy/before_inference/0", "busy/before_inference/1")
		first, firstEnd, firstLane := ms("busy/step_start/1")
		again, _, againLane := ms("busy/step_start/1, retry")
		require.GreaterOrEqual(t, again, firstEnd)
		phaseFrom, phaseTo, main := ms("step_end")
		for i, name := range []string{"round 1", "round 2"} {
			from, to, tid := ms(name)
			require.InDelta(t, 7, to-from, slack, "as long as its action")
			require.Equal(t, main, tid, "in its phase")
			require.GreaterOrEqual(t, from, phaseFrom)
			require.LessOrEqual(t, to, phaseTo)
			require.Equal(t, 1.0, spans[slices.IndexFunc(spans, func(s entry) bool { return s.Name == name })].Args["actions"], i)
		}
		var all struct{ TraceEvents []entry }
		require.NoError(t, json.Unmarshal(tr.chrome.Bytes(), &all))
		var arrows []entry
		commits := 0
		for _, e := range all.TraceEvents {
			switch {
			case e.Ph == "s" || e.Ph == "f":
				arrows = append(arrows, e)
			case strings.HasPrefix(e.Name, "commit "):
				commits++
				require.Equal(t, float64(commits), e.Args["revision"])
				require.NotEmpty(t, e.Args["keys"])
			}
		}
		require.Positive(t, commits)
		require.Len(t, arrows, 2)
		require.Equal(t, []float64{first, again}, []float64{*arrows[0].Ts / 1000, *arrows[1].Ts / 1000})
		require.Equal(t, []uint32{firstLane, againLane}, []uint32{arrows[0].Tid, arrows[1].Tid})
	})
}

// A picture in which something is missing says so, and is sound.
func TestPictureWithGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &blocking{release: make(chan struct{})}
		text := &blocking{release: w.release}
		tr := trace.New(trace.Options{Chrome: w, Text: text, Buffer: 600})
		for i := range 20 {
			tr.Observe(engine.Warning{Header: engine.Header{Seq: uint64(i), Run: "r", Time: enginetest.Epoch().Add(time.Duration(i))}, Message: strings.Repeat("x", 100)})
			synctest.Wait()
		}
		close(w.release)
		require.Error(t, tr.Close(t.Context()))
		checkChrome(t, w.Bytes())
		require.Regexp(t, `"dropped":\{"events":0,"pieces":[1-9][0-9]*\}\}\n$`, w.String())
		require.Regexp(t, `\n\([0-9]+ pieces missing\)\n`, text.String())
	})
}
