package modeltest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
)

// test is one check of the kit.
type test struct {
	name string
	run  func(t *testing.T, p Provider)
}

// Run runs the whole kit as subtests. None of them runs in parallel with another, and none may: they look for
// goroutines that are left.
func Run(t *testing.T, p Provider) {
	t.Helper()
	require.NoError(t, p.validate())
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"answers", answerTests},
		{"failures", failureTests},
		{"ends", endTests},
		{"requests", requestTests},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, test := range group.tests {
				t.Run(test.name, func(t *testing.T) { test.run(t, p) })
			}
		})
	}
}

// tools are the tools of most requests.
var tools = []inference.ToolSpec{
	{
		Name: "weather", Description: "Tells the weather.", Kind: "read",
		Schema: `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1}},"required":["city"]}`,
	},
	{Name: "now", Description: "Tells the time."},
}

// full sets every field that an override has.
var full = inference.Override{
	UpstreamModel:   inference.Some("modeltest-upstream"),
	Temperature:     inference.Some(0.25),
	MaxTokens:       inference.Some(1234),
	TopP:            inference.Some(0.5),
	ReasoningEffort: inference.Some(inference.EffortLow),
	Extra:           inference.Extra{}.With("modeltest", `{"a":[1,true,"x"]}`).With("modeltest_null", "null"),
}

var efforts = []inference.Effort{
	inference.EffortNone, inference.EffortLow, inference.EffortMedium, inference.EffortHigh, inference.EffortMax,
}

// has reports whether a failure of the class is among the provider's.
func (p Provider) has(class error) bool {
	return slices.ContainsFunc(p.Failures, func(f Failure) bool { return f.Class == class })
}
