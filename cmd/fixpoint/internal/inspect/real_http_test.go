package inspect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/inspect"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
)

// Capability B4, H5. A run is recorded; the inspector shows its hooks at the same time, the
// retries of those that lost, rounds, decisions, a wait and a delegate; and the Chrome
// export of the same run has the same times.
func TestInspectorOfARealRun(t *testing.T) {
	var chrome bytes.Buffer
	tr := trace.New(trace.Options{Chrome: &chrome})
	path := newWorkshop().trace(t, tr)
	require.NoError(t, tr.Close(context.WithoutCancel(t.Context())))
	rec, err := inspect.Read(path)
	require.NoError(t, err)
	server := httptest.NewServer(inspect.Handler(inspect.NewSource(rec)))
	t.Cleanup(server.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/view.json", http.NoBody)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	var v recording.View
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&v))
	require.Empty(t, v.Notes)

	of := func(kind string) (list []recording.Span) {
		for _, s := range v.Spans {
			if s.Kind == kind {
				list = append(list, s)
			}
		}
		return list
	}
	// The hooks of the first phase began before any of them ended; the retries came behind.
	phase := slices.IndexFunc(v.Spans, func(s recording.Span) bool { return s.Kind == recording.KindPhase && s.Name == "before_inference" })
	var first, again []recording.Span
	for _, s := range of(recording.KindHook) {
		switch {
		case s.Parent != v.Spans[phase].ID || s.Tier != 0:
		case s.Try == 1:
			first = append(first, s)
		default:
			again = append(again, s)
		}
	}
	require.Len(t, first, len(atOnce))
	require.Len(t, again, 2)
	begun := slices.MaxFunc(first, func(a, b recording.Span) int { return int(a.Start - b.Start) }).Start
	for _, s := range first {
		require.Less(t, begun, *s.End, "%s overlaps the others", s.Name)
		require.Less(t, *s.End, again[0].Start)
	}
	require.Less(t, *again[0].End, again[1].Start, "one by one")
	require.Len(t, of(recording.KindRound), 3)
	require.Len(t, of(recording.KindWait), 1)
	require.InDelta(t, 4.2e6, *of(recording.KindWait)[0].End-of(recording.KindWait)[0].Start, 1e4)

	// The delegate's run is below the body of the call, and effects have spans.
	require.Len(t, v.Runs, 2)
	bodies, runs := of(recording.KindBody), of(recording.KindRun)
	require.Equal(t, bodies[2].ID, runs[1].Parent)
	require.Equal(t, v.Runs[1].ID, bodies[2].Call)
	require.NotEmpty(t, v.Effects)
	for _, e := range v.Effects {
		require.True(t, slices.ContainsFunc(of(recording.KindEffect), func(s recording.Span) bool { return s.ID == e.Span && s.Name == e.Effect }), e.ID)
	}

	// What the page says of a call is what the command says of it.
	for _, c := range v.Calls {
		told, err := rec.Why(c.ID)
		require.NoError(t, err)
		require.Equal(t, told[0].Call.Why, c.Why)
	}
	require.Equal(t, []string{"blocked", "ok", "ok", "ok", "ok"}, []string{v.Calls[0].Outcome, v.Calls[1].Outcome, v.Calls[2].Outcome, v.Calls[3].Outcome, v.Calls[4].Outcome})
	require.Len(t, v.Calls[1].Edits, 1)
	require.True(t, v.Calls[2].Tickets[0].Approved)

	// The same run in the Chrome trace-event format.
	var file struct {
		TraceEvents []struct {
			Name, Cat, Ph string
			Ts, Dur       *float64
			Pid, Tid      *int
		}
	}
	require.NoError(t, json.Unmarshal(chrome.Bytes(), &file))
	lengths := map[string]int{}
	for _, e := range file.TraceEvents {
		require.Contains(t, []string{"M", "X", "i", "s", "f"}, e.Ph)
		require.NotNil(t, e.Pid)
		require.NotNil(t, e.Tid)
		if e.Ph == "X" {
			require.NotNil(t, e.Ts)
			require.NotNil(t, e.Dur)
			lengths[e.Cat]++
		}
	}
	require.Equal(t, len(of(recording.KindHook)), lengths["hook"])
	require.Equal(t, len(of(recording.KindGate)), lengths["gate"])
	require.Equal(t, len(of(recording.KindModel)), lengths["model"])
}
