package inference_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/ddd26017/fixpoint/inference"
)

func ExampleOverride_Merge() {
	run := inference.Override{Temperature: inference.Some(0.7), MaxTokens: inference.Some(200)}
	step := inference.Override{Temperature: inference.Some(0.0)}
	for field, value := range run.Merge(step).Fields() {
		fmt.Println(field, value)
	}
	// Output:
	// max_tokens 200
	// temperature 0
}

func ExampleOverride_Without() {
	spec := inference.Request{Model: "small", Params: inference.Params{Temperature: inference.Some(0.2)}}
	run := inference.Override{Temperature: inference.Some(0.9), UpstreamModel: inference.Some("big")}
	step := inference.Override{}.Without(inference.FieldTemperature)

	r := run.Merge(step).Apply(spec)
	fmt.Println(r.Model, r.Params.Temperature.Or(-1))
	// Output: big 0.2
}

func ExampleResolve() {
	_, owners := inference.Resolve(
		inference.Owned{Owner: "budget", Override: inference.Override{MaxTokens: inference.Some(100)}},
		inference.Owned{Owner: "precise", Override: inference.Override{Temperature: inference.Some(0.0), MaxTokens: inference.Some(50)}},
	)
	for _, o := range owners {
		fmt.Println(o.Field, "set by", o.Owner)
	}
	// Output:
	// max_tokens set by precise
	// temperature set by precise
}

func ExampleJSON_Decode() {
	var args struct {
		Path string `json:"path"`
	}
	err := inference.JSON(`{"path":"a.txt","mode":"r"}`).Decode(&args)
	fmt.Println(errors.Is(err, inference.ErrBadJSON))
	fmt.Println(err)
	// Output:
	// true
	// inference: bad JSON at offset 27: json: unknown field "mode"
}

func ExampleJSON_Canonical() {
	a, _ := inference.JSON(`{"b": 1, "a": 2}`).Canonical()
	b, _ := inference.JSON(`{"a":2,"b":1}`).Canonical()
	fmt.Println(a, a == b)
	// Output: {"a":2,"b":1} true
}

func ExampleOpt() {
	p := inference.Params{Temperature: inference.Some(0.0)}
	text, _ := json.Marshal(p)
	fmt.Println(string(text))
	fmt.Println(p.TopP.Or(1))
	// Output:
	// {"temperature":0}
	// 1
}

func ExampleExtra_With() {
	base := inference.Extra{}.With("seed", "7")
	more := base.With("service_tier", `"flex"`)
	fmt.Println(base)
	fmt.Println(more)
	// Output:
	// {"seed":7}
	// {"seed":7,"service_tier":"flex"}
}

func ExampleCollect() {
	var stream iter.Seq2[inference.Chunk, error] = func(yield func(inference.Chunk, error) bool) {
		_ = yield(inference.Chunk{Text: "Hel"}, nil) &&
			yield(inference.Chunk{Text: "lo"}, nil) &&
			yield(inference.Chunk{}, errors.New("connection lost"))
	}
	r, err := inference.Collect(stream)
	fmt.Println(r.Message.Text, err)
	// Output: Hello connection lost
}

func ExampleModelFunc() {
	echo := inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
		last := r.Messages[len(r.Messages)-1]
		return inference.Response{Message: inference.Assistant("you said: " + last.Text), Stop: inference.StopEnd}, nil
	})
	r, err := echo.Generate(context.Background(), inference.Request{Messages: []inference.Message{inference.User("hi")}})
	fmt.Println(r.Message.Text, err)
	// Output: you said: hi <nil>
}

func ExampleTransformFunc() {
	addTime := inference.TransformFunc(func(_ context.Context, r inference.Request) (inference.Request, error) {
		r.System += " Today is Monday."
		return r, nil
	})
	r, _ := addTime.Transform(context.Background(), inference.Request{System: "Be brief."})
	fmt.Println(r.System)
	// Output: Be brief. Today is Monday.
}

func ExampleValidateResponse() {
	r := inference.Response{Message: inference.Assistant("", inference.ToolCall{ID: "1", Name: "read"}, inference.ToolCall{ID: "1", Name: "read"})}
	fmt.Println(inference.ValidateResponse(r))
	// Output: inference: bad response: tool call 1 (id "1"): an earlier call has the same id; give each call an id that is unique in its response
}
