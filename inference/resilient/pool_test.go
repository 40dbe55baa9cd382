package resilient_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/quick"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

func TestPoolAsksTheNext(t *testing.T) {
	for class := resilient.Unknown; class <= resilient.Cancelled; class++ {
		for way, ask := range ways {
			_, a := streaming(breaks(failure(class)).paid(1))
			fb, b := streaming(says("fine").paid(2))
			var told []resilient.Asked
			m := pool(t, resilient.Pool{
				Members: []resilient.Member{
					{Name: "a", Model: a},
					{Name: "b", Model: b, Override: inference.Override{UpstreamModel: inference.Some("m-2")}},
				},
				Observe: func(_ context.Context, a resilient.Asked) { told = append(told, a) },
			})
			resp, err := ask(t.Context(), m, request("x"))
			if !class.Elsewhere() {
				require.ErrorIs(t, err, class, "%v, %s", class, way)
				require.Zero(t, fb.asked(), "%v, %s", class, way)
				require.Equal(t, []resilient.Asked{{Member: "a", Model: "m", Err: failure(class)}}, told)
				continue
			}
			require.NoError(t, err, "%v, %s", class, way)
			require.Equal(t, "m-2", fb.requests[0].Model, way)
			require.Equal(t, request("x").Messages, fb.requests[0].Messages, "%s: the first spoiled a clone", way)
			require.Equal(t, "m-2", resp.Model, "%s: who served", way)
			require.EqualValues(t, 3, resp.Usage.OutputTokens, way)
			require.Equal(t, []resilient.Asked{{"a", "m", failure(class), "b"}, {"b", "m-2", nil, ""}}, told, way)
		}
	}
}

func TestPoolEndsWithTheContext(t *testing.T) {
	for way, ask := range ways {
		ctx, cancel := context.WithCancel(t.Context())
		_, a := streaming(deaf(breaks(broken)))
		fb, b := streaming(says("fine"))
		m := pool(t, resilient.Pool{
			Members: []resilient.Member{{Name: "a", Model: a}, {Name: "b", Model: b}},
			Route:   func(context.Context, inference.Request) []string { cancel(); return nil },
		})
		_, err := ask(ctx, m, request("x"))
		require.ErrorIs(t, err, broken, way)
		require.Equal(t, resilient.Cancelled, resilient.ClassOf(err), way)
		require.Zero(t, fb.asked(), way)
	}
}

// Fault B10. No failure of a member hides another's.
func TestPoolJoinsAllErrors(t *testing.T) {
	quota := &resilient.Failure{Class: resilient.Quota, RetryAfter: time.Hour, Err: errors.New("pay up")}
	limited := &resilient.Failure{Class: resilient.RateLimited, RetryAfter: time.Minute}
	busy := &resilient.Failure{Class: resilient.Overloaded, RetryAfter: time.Second}
	odd := errors.New("odd")
	for name, c := range map[string]struct {
		errs  []error
		class resilient.Class
		after time.Duration
	}{
		"one":                      {[]error{odd}, resilient.Unknown, 0},
		"the last, without hope":   {[]error{odd, failure(resilient.Auth), quota}, resilient.Quota, time.Hour},
		"the one with hope":        {[]error{quota, limited, odd}, resilient.RateLimited, time.Minute},
		"the one with most of it":  {[]error{limited, busy, quota}, resilient.Overloaded, time.Second},
		"the one with most, first": {[]error{busy, limited}, resilient.Overloaded, time.Second},
	} {
		for way, ask := range ways {
			var p resilient.Pool
			for i, err := range c.errs {
				_, m := streaming(breaks(err).paid(1))
				p.Members = append(p.Members, resilient.Member{Name: strconv.Itoa(i), Model: m})
			}
			resp, err := ask(t.Context(), pool(t, p), request("x"))
			for i, one := range c.errs {
				require.ErrorIs(t, err, one, "%s, %s", name, way)
				require.ErrorContains(t, err, fmt.Sprintf("member \"%d\": %v", i, one))
			}
			var f *resilient.Failure
			require.ErrorAs(t, err, &f)
			require.Equal(t, []any{c.class, c.after, "m", false}, []any{f.Class, f.RetryAfter, f.Model, f.Partial}, "%s, %s", name, way)
			require.EqualValues(t, len(c.errs), resp.Usage.OutputTokens, "%s, %s", name, way)
		}
	}
}

func TestPoolRoutes(t *testing.T) {
	var p resilient.Pool
	var asked []string
	for _, name := range []string{"a", "b", "c"} {
		p.Members = append(p.Members, resilient.Member{Name: name, Model: inference.ModelFunc(func(context.Context, inference.Request) (inference.Response, error) {
			asked = append(asked, name)
			return inference.Response{}, broken
		})})
	}
	for _, c := range []struct{ route, want []string }{
		{nil, []string{"a", "b", "c"}},
		{[]string{"c"}, []string{"c"}},
		{[]string{"c", "a"}, []string{"c", "a"}},
		{[]string{"b", "b", "a", "b"}, []string{"b", "a"}},
		{[]string{"a", "x"}, nil},
	} {
		asked = nil
		p.Route = func(_ context.Context, r inference.Request) []string {
			require.Equal(t, "m", r.Model)
			return c.route
		}
		_, err := pool(t, p).Generate(t.Context(), request("x"))
		require.Equal(t, c.want, asked, "%v", c.route)
		if c.want == nil {
			require.EqualError(t, err, `resilient: model m: bad request: Pool.Route names "x", which is no member of the pool`)
		}
	}
}

func TestPoolSticksToWhoServed(t *testing.T) {
	type thread struct{}
	down := map[string]bool{}
	var asked []string
	p := resilient.Pool{Sticky: func(ctx context.Context, _ inference.Request) string {
		name, _ := ctx.Value(thread{}).(string)
		return name
	}}
	for _, name := range []string{"a", "b", "c"} {
		p.Members = append(p.Members, resilient.Member{Name: name, Model: inference.ModelFunc(func(context.Context, inference.Request) (inference.Response, error) {
			if asked = append(asked, name); down[name] {
				return inference.Response{}, broken
			}
			return inference.Response{Message: inference.Assistant("fine")}, nil
		})})
	}
	var route []string
	p.Route = func(context.Context, inference.Request) []string { return route }
	m := pool(t, p)
	ask := func(name string, want ...string) {
		t.Helper()
		asked = nil
		_, err := m.Generate(context.WithValue(t.Context(), thread{}, name), request("x"))
		require.NoError(t, err)
		require.Equal(t, want, asked)
	}
	down["a"] = true
	ask("t1", "a", "b")
	ask("", "a", "b")
	down["a"] = false
	ask("t1", "b")
	ask("t2", "a")
	ask("", "a")
	down["b"] = true
	ask("t1", "b", "a")
	down["b"] = false
	ask("t1", "a")
	route = []string{"c", "b"}
	ask("t1", "c") // Route wins
	ask("t2", "c")
	route = []string{"b", "c"}
	ask("t2", "c")
	for i := range 2000 { // many others come by
		ask("other-"+strconv.Itoa(i), "b")
	}
	ask("t2", "b")
}

func TestPoolRemembersWhatIsUsed(t *testing.T) {
	var asked string
	p := resilient.Pool{
		Sticky: func(_ context.Context, r inference.Request) string { return r.Messages[0].Text },
		Route: func(_ context.Context, r inference.Request) []string {
			if r.System == "first" {
				return []string{"b", "a"}
			}
			return nil
		},
	}
	for _, name := range []string{"a", "b"} {
		p.Members = append(p.Members, resilient.Member{Name: name, Model: inference.ModelFunc(func(context.Context, inference.Request) (inference.Response, error) {
			asked = name
			return inference.Response{}, nil
		})})
	}
	m := pool(t, p)
	first := request("mine")
	first.System = "first"
	_, _ = m.Generate(t.Context(), first)
	for i := range 3000 {
		_, _ = m.Generate(t.Context(), request(strconv.Itoa(i)))
		require.Equal(t, "a", asked)
		if i%400 == 0 {
			_, _ = m.Generate(t.Context(), request("mine"))
			require.Equal(t, "b", asked, "after %d", i)
		}
	}
}

// TestPoolOfMixedModels puts models together of which one streams and one does not.
func TestPoolOfMixedModels(t *testing.T) {
	whole := says("all at once").paid(3).and(calls("look", `{"a":1}`), inference.Chunk{Part: inference.Part{Kind: "vendor"}, Model: "m-2"})
	_, other := plain(whole)
	want, err := other.Generate(t.Context(), request("x"))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		first answer
		paid  int64
	}{
		"fails at once":          {breaks(broken), 3},
		"fails with its usage":   {breaks(broken).paid(1), 4},
		"fails after some text":  {breaks(broken, "all "), 3},
		"fails after other text": {breaks(broken, "none"), 0},
		"answers":                {says("a", "b"), 0},
	} {
		for _, order := range [][]string{{"streams", "does not"}, {"down", "streams", "does not"}} {
			_, a := streaming(c.first)
			_, b := plain(whole)
			_, down := plain(breaks(broken))
			m := pool(t, resilient.Pool{
				Members:  []resilient.Member{{Name: "streams", Model: a}, {Name: "does not", Model: b}, {Name: "down", Model: down}},
				Recovery: resilient.Recovery{How: resilient.Repeat},
				Route:    func(context.Context, inference.Request) []string { return order },
			})
			resp, err := collect(t.Context(), m, request("x"))
			switch {
			case name == "fails after other text":
				require.ErrorIs(t, err, resilient.ErrDiverged)
			case c.first.err == nil:
				require.NoError(t, err)
				require.Equal(t, "ab", resp.Message.Text)
			default:
				require.NoError(t, err, name)
				want.Usage.OutputTokens = c.paid
				require.Equal(t, want, resp, name)
			}
		}
	}
}

func TestPoolInMidStream(t *testing.T) {
	for name, c := range map[string]struct {
		how  resilient.How
		b    answer
		want string
		err  error
	}{
		"fail":            {resilient.Fail, says("b"), "a", broken},
		"go on":           {resilient.Ask, says("b"), "ab", nil},
		"prefill":         {resilient.Prefill, says("b"), "ab", nil},
		"repeat":          {resilient.Repeat, says("ab"), "ab", nil},
		"diverge":         {resilient.Repeat, says("b"), "a", resilient.ErrDiverged},
		"diverge and end": {resilient.Repeat, says("b"), "a", broken},
		"break again":     {resilient.Ask, breaks(broken, "b"), "abc", nil},
	} {
		fa, a := streaming(breaks(broken, "a"))
		_, b := streaming(c.b)
		fc, last := streaming(says("c"))
		m := pool(t, resilient.Pool{
			Members:  []resilient.Member{{Name: "a", Model: a}, {Name: "b", Model: b}, {Name: "c", Model: last}},
			Recovery: resilient.Recovery{How: c.how},
		})
		resp, err := collect(t.Context(), m, request("x"))
		require.ErrorIs(t, err, c.err, name)
		require.Equal(t, c.want, resp.Message.Text, name)
		require.Equal(t, 1, fa.asked(), name)
		if c.err != nil {
			var f *resilient.Failure
			require.ErrorAs(t, err, &f)
			require.True(t, f.Partial, name)
			require.Zero(t, fc.asked(), name)
		}
	}
}

// TestPoolUnderRetry asks a pool again whose members all failed.
func TestPoolUnderRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a := plain(breaks(failure(resilient.Auth)), breaks(failure(resilient.Auth)))
		_, b := plain(breaks(&resilient.Failure{Class: resilient.Overloaded, RetryAfter: time.Minute}), says("fine"))
		m := pool(t, resilient.Pool{Members: []resilient.Member{{Name: "a", Model: a}, {Name: "b", Model: b}}})
		start := time.Now()
		_, err := wrap(t, m, resilient.Retry{Rand: func() float64 { return 0 }}).Generate(t.Context(), request("x"))
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

// Fault B39. Settings for one call do not leak into others: many ask at once, each with its own, and members lay theirs
// over it.
func TestPoolOverridesTouchOneCall(t *testing.T) {
	check := func(name string, limit func(i int) int) inference.Model {
		return inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
			i, _ := strconv.Atoi(r.Messages[0].Text)
			if r.Model != name || r.Params.MaxTokens != inference.Some(limit(i)) || !r.Params.Temperature.IsSet() {
				t.Errorf("%s got %+v", name, r)
			}
			return inference.Response{}, broken
		})
	}
	p := resilient.Pool{Members: []resilient.Member{
		{Name: "a", Model: check("m", func(i int) int { return i })},
		{Name: "b", Model: check("m-b", func(int) int { return 7 }),
			Override: inference.Override{UpstreamModel: inference.Some("m-b"), MaxTokens: inference.Some(7)}},
		{Name: "c", Model: check("m", func(i int) int { return i })},
	}}
	m := pool(t, p)
	p.Members[0].Name, p.Members[1].Override = "z", inference.Override{} // too late to matter
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			r := request(strconv.Itoa(i))
			r.Params.MaxTokens, r.Params.Temperature = inference.Some(i), inference.Some(0.0)
			if _, err := m.Generate(t.Context(), r); !errors.Is(err, broken) {
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
}

// TestPoolAgainstAModel draws members, how they fail and routes, and compares with a few lines that say what is right.
func TestPoolAgainstAModel(t *testing.T) {
	right := func(outcomes []uint8, route []uint8) bool {
		outcomes = outcomes[:min(len(outcomes), 6)]
		if len(outcomes) == 0 {
			return true
		}
		var asked, names []string
		var p resilient.Pool
		class := func(i int) resilient.Class { return resilient.Class(outcomes[i] % 13) } // beyond the last: an answer
		for i := range outcomes {
			p.Members = append(p.Members, resilient.Member{Name: strconv.Itoa(i), Model: inference.ModelFunc(func(context.Context, inference.Request) (inference.Response, error) {
				asked = append(asked, strconv.Itoa(i))
				if class(i) > resilient.Cancelled {
					return inference.Response{Model: strconv.Itoa(i)}, nil
				}
				return inference.Response{}, failure(class(i))
			})})
		}
		for _, n := range route {
			names = append(names, strconv.Itoa(int(n)%len(outcomes)))
		}
		p.Route = func(context.Context, inference.Request) []string { return names }
		resp, err := pool(t, p).Generate(t.Context(), request("x"))

		order := names
		if len(order) == 0 {
			for i := range outcomes {
				order = append(order, strconv.Itoa(i))
			}
		}
		var want []string
		served := ""
		for _, name := range order {
			if slices.Contains(want, name) {
				continue
			}
			want = append(want, name)
			i, _ := strconv.Atoi(name)
			if class(i) > resilient.Cancelled {
				served = name
			}
			if served != "" || !class(i).Elsewhere() {
				break
			}
		}
		if !slices.Equal(asked, want) || (err == nil) != (served != "") {
			return false
		}
		return err != nil || resp.Model == served
	}
	require.NoError(t, quick.Check(right, &quick.Config{MaxCount: 1000}))
}

func TestNewPoolRefuses(t *testing.T) {
	_, m := plain()
	_, err := resilient.NewPool(resilient.Pool{})
	require.EqualError(t, err, "resilient: Pool.Members must be at least one")
	_, err = resilient.NewPool(resilient.Pool{
		Members: []resilient.Member{{Model: m}, {Name: "a", Model: m}, {Name: "a", Model: m}, {Name: "b"},
			{Name: "c", Model: m, Override: inference.Override{MaxTokens: inference.Some(-1)}}},
		Recovery: resilient.Recovery{How: 9},
	})
	for _, want := range []string{
		"resilient: Pool.Members[0] has no name", `resilient: Pool.Members[2] has the name "a" of an earlier one`,
		`resilient: Pool.Members[3], "b", has no model`, `resilient: override of member "c": inference: field "max_tokens"`,
		"resilient: Pool.Recovery.How must be one of",
	} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorIs(t, err, inference.ErrBadField)
}
