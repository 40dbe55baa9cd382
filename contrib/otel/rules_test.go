package otel_test

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/ddd26017/fixpoint/contrib/otel"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
)

// filled puts a text into every place of an event of the type.
func filled(t *testing.T, typ, text string, json inference.JSON) engine.Event {
	t.Helper()
	zero, err := engine.UnmarshalEvent(fmt.Appendf(nil, `{"type":%q}`, typ))
	require.NoError(t, err)
	v := reflect.New(reflect.TypeOf(zero)).Elem()
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		switch at := v.Addr().Interface().(type) {
		case *inference.JSON:
			*at = json
			return
		case *time.Time:
			*at = enginetest.Epoch()
			return
		case *phase.Phase:
			*at = phase.StepStart
			return
		}
		switch v.Kind() {
		case reflect.String:
			v.SetString(text)
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			for i := range v.Len() {
				fill(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					fill(v.Field(i))
				}
			}
		}
	}
	fill(v)
	return v.Interface().(engine.Event)
}

// What the rules of a trace hide is in no span and no metric, wherever in an event it
// was, whether or not contents are recorded, and wherever a text is cut.
func TestRules(t *testing.T) {
	const secret = "zq7-hunter"
	token := "ghp_" + strings.Repeat("a1", 18)
	for name, c := range map[string]struct {
		rules  trace.Rules
		text   string
		secret string
	}{
		"looks":   {trace.Rules{}, "cannot reach https://me:" + secret + "@host: " + token, token[:12]},
		"address": {trace.Rules{}, "cannot reach https://me:" + secret + "@host", secret},
		"member":  {trace.Rules{}, `refused: {"password":"` + secret + `"}`, secret},
		"own":     {trace.Rules{Members: []string{"pin"}, Bare: true}, `refused: {"my_pin":["` + secret + `"`, secret},
		"text":    {trace.Rules{Texts: []*regexp.Regexp{regexp.MustCompile(`zq\d-\w+`)}}, "refused " + secret, secret},
		"exact":   {trace.Rules{Secrets: []string{secret}, Bare: true}, "refused " + secret, secret},
		"cut":     {trace.Rules{Secrets: []string{secret}, Bare: true}, strings.Repeat("x", 508) + secret, secret[:4]},
	} {
		t.Run(name, func(t *testing.T) {
			args, err := inference.ToJSON(map[string]any{"in": c.text, c.text: []string{c.text}})
			require.NoError(t, err)
			seen := 0
			for _, content := range []bool{true, false} {
				w := newWatch(t, otel.Options{Content: content, Rules: c.rules, ContentBytes: 520, Provider: func(string) string { return c.text }})
				for range 2 { // what is open belongs to what comes
					for _, typ := range engine.EventTypes() {
						w.Observe(filled(t, typ, c.text, args))
					}
				}
				w.Close()
				for _, s := range w.spans.GetSpans() {
					texts(s, func(text string) {
						seen++
						require.NotContains(t, text, c.secret, s.Name)
					})
				}
				var metrics metricdata.ResourceMetrics
				require.NoError(t, w.reader.Collect(t.Context(), &metrics))
				for _, scope := range metrics.ScopeMetrics {
					for _, m := range scope.Metrics {
						each(m, func(set attribute.Set) {
							seen++
							require.NotContains(t, set.Encoded(attribute.DefaultEncoder()), c.secret, m.Name)
						})
					}
				}
			}
			require.Greater(t, seen, 200)
		})
	}
	w := newWatch(t, otel.Options{Rules: trace.Rules{Bare: true}})
	w.Observe(engine.Warning{Header: engine.Header{Run: "r"}, Message: "password=" + secret})
	w.Close()
	require.Contains(t, tree(w.spans.GetSpans()), secret, "without rules all is told")
}
