package resilient_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

// moody returns a model that fails as often as it is told, and then answers.
func moody(name string, failures int, class resilient.Class) inference.Model {
	return inference.ModelFunc(func(context.Context, inference.Request) (inference.Response, error) {
		if failures > 0 {
			failures--
			return inference.Response{}, &resilient.Failure{Class: class, Provider: "moody", Model: name}
		}
		return inference.Response{Message: inference.Assistant("hello from " + name), Stop: inference.StopEnd, Model: name}, nil
	})
}

// instantly is for examples that nobody wants to wait for.
func instantly(context.Context, time.Duration) error { return nil }

func Example() {
	model, err := resilient.Wrap(moody("small", 2, resilient.Overloaded),
		resilient.Timeout{Request: 5 * time.Minute, Stall: time.Minute},
		resilient.Retry{Sleep: instantly},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := model.Generate(context.Background(), inference.Request{Model: "small"})
	fmt.Println(resp.Message.Text, err)
	// Output: hello from small <nil>
}

// Each model of a pool has a limit for one attempt, attempts for one answer, and a breaker for when that does not help.
// Answers that were cut off are gone on with by whichever model then serves.
func Example_order() {
	ctx := context.Background()
	protect := func(m inference.Model) (inference.Model, *resilient.Breaker) {
		breaker := &resilient.Breaker{Failures: 1, Now: func() time.Time { return noon }}
		m, err := resilient.Wrap(m, resilient.Timeout{Request: time.Minute}, resilient.Retry{Attempts: 2, Sleep: instantly}, breaker)
		if err != nil {
			panic(err)
		}
		return m, breaker
	}
	large, breaker := protect(moody("large", 100, resilient.Transient))
	small, _ := protect(moody("small", 0, resilient.Unknown))
	pool, err := resilient.NewPool(resilient.Pool{
		Members: []resilient.Member{
			{Name: "first", Model: large},
			{Name: "second", Model: small, Override: inference.Override{UpstreamModel: inference.Some("small")}},
		},
		Observe: func(_ context.Context, a resilient.Asked) {
			fmt.Printf("asked %s for %s: %v\n", a.Member, a.Model, a.Err)
		},
	})
	if err != nil {
		panic(err)
	}
	model, err := resilient.Wrap(pool, resilient.Continue{})
	if err != nil {
		panic(err)
	}
	for range 2 {
		resp, err := model.Generate(ctx, inference.Request{Model: "large"})
		fmt.Println(resp.Message.Text, err)
	}
	fmt.Println("the breaker of large is", breaker.State())
	// Output:
	// asked first for large: resilient: gave up after 2 attempts: moody: model large: transient failure
	// asked second for small: <nil>
	// hello from small <nil>
	// asked first for large: resilient: model large: transient failure (retry after 30s): resilient: the circuit breaker is open
	// asked second for small: <nil>
	// hello from small <nil>
	// the breaker of large is open
}

func ExampleRetry() {
	model, err := resilient.Wrap(moody("small", 5, resilient.RateLimited), resilient.Retry{
		Attempts: 3,
		Base:     time.Second,
		Rand:     func() float64 { return 0.5 },
		Sleep:    instantly,
		Observe: func(_ context.Context, f resilient.Failed) {
			fmt.Printf("attempt %d: %v; again in %v\n", f.Attempt, f.Err, f.Wait)
		},
	})
	if err != nil {
		panic(err)
	}
	_, err = model.Generate(context.Background(), inference.Request{Model: "small"})
	fmt.Println(err)
	// Output:
	// attempt 1: moody: model small: rate limited; again in 500ms
	// attempt 2: moody: model small: rate limited; again in 1s
	// resilient: gave up after 3 attempts: moody: model small: rate limited
}

// A stream breaks off in the middle of a call. The text that was passed on stays; the half call is never seen.
func ExampleRecovery() {
	model, err := resilient.Wrap(&fake{answers: []answer{
		breaks(&resilient.Failure{Class: resilient.Transient}, "Let me ").and(calls("delete", `{"path":`)),
		says("look.").and(calls("read", `{"path":"a"}`)),
	}}, resilient.Retry{Sleep: instantly, Recovery: resilient.Recovery{How: resilient.Prefill}})
	if err != nil {
		panic(err)
	}
	resp, err := inference.Collect(model.(inference.Streamer).Stream(context.Background(), inference.Request{}))
	fmt.Println(resp.Message.Text, resp.Message.ToolCalls[0].Name, resp.Message.ToolCalls[0].Args, err)
	// Output: Let me look. read {"path":"a"} <nil>
}

func ExampleContinue() {
	pieces := []string{"one, two, ", "three"}
	model, err := resilient.Wrap(inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
		piece := pieces[0]
		pieces = pieces[1:]
		stop := inference.StopEnd
		if len(pieces) > 0 {
			stop = inference.StopMaxTokens
		}
		return inference.Response{Message: inference.Assistant(piece), Stop: stop}, nil
	}), resilient.Continue{})
	if err != nil {
		panic(err)
	}
	resp, err := model.Generate(context.Background(), inference.Request{Messages: []inference.Message{inference.User("count")}})
	fmt.Println(resp.Message.Text, resp.Stop, err)
	// Output: one, two, three end <nil>
}

// The requests of one thread stay with the model that answered the first of them.
func ExamplePool_sticky() {
	type thread struct{}
	model, err := resilient.NewPool(resilient.Pool{
		Members: []resilient.Member{{Name: "a", Model: moody("a", 1, resilient.Overloaded)}, {Name: "b", Model: moody("b", 0, resilient.Unknown)}},
		Sticky: func(ctx context.Context, _ inference.Request) string {
			id, _ := ctx.Value(thread{}).(string)
			return id
		},
	})
	if err != nil {
		panic(err)
	}
	for _, id := range []string{"t1", "t1", "t2"} {
		resp, err := model.Generate(context.WithValue(context.Background(), thread{}, id), inference.Request{})
		fmt.Println(id, resp.Message.Text, err)
	}
	// Output:
	// t1 hello from b <nil>
	// t1 hello from b <nil>
	// t2 hello from a <nil>
}

func ExampleFailure() {
	var err error = &resilient.Failure{
		Class: resilient.RateLimited, Provider: "openai", Model: "small", Status: 429, Code: "rate_limit_exceeded", RetryAfter: 2 * time.Second,
	}
	var failure *resilient.Failure
	switch {
	case errors.Is(err, resilient.ContextOverflow):
		fmt.Println("the conversation has to be shortened")
	case errors.As(err, &failure) && failure.Class.Again():
		fmt.Println("later:", failure)
	}
	// Output: later: openai: model small: rate limited (status 429, code rate_limit_exceeded, retry after 2s)
}

func ExampleParseRetryAfter() {
	now := time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)
	for _, header := range []string{"20", "0.5", "Mon, 30 Nov 2026 12:01:00 GMT", "soon"} {
		wait, ok := resilient.ParseRetryAfter(header, now)
		fmt.Println(wait, ok)
	}
	// Output:
	// 20s true
	// 500ms true
	// 1m0s true
	// 0s false
}
