package gemini_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/ddd26017/fixpoint/contrib/model/gemini"
	"github.com/ddd26017/fixpoint/contrib/model/modeltest"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

// local is a service on this machine that says the same to everybody.
func local(reply modeltest.Reply) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if reply.Status != 0 {
			w.WriteHeader(reply.Status)
		}
		fmt.Fprint(w, reply.Body)
	}))
}

// An agent asks a service that speaks the Gemini API.
func Example() {
	service := local(wire{}.whole(modeltest.Answer{Text: []string{"Good morning."}, Stop: inference.StopEnd}))
	defer service.Close()

	model, err := gemini.New(gemini.Options{BaseURL: service.URL, Model: "some-model"})
	if err != nil {
		panic(err)
	}
	eng, err := engine.New(engine.Config{Model: model})
	if err != nil {
		panic(err)
	}
	result, err := eng.Run(context.Background(), engine.AgentSpec{ID: "greeter"}, engine.Prompt("Hello"))
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Text)
	// Output: Good morning.
}

// A stream is walked piece by piece.
func ExampleModel_Stream() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, frame := range (wire{}).stream(modeltest.Answer{Text: []string{"Good ", "morning."}, Stop: inference.StopEnd}) {
			fmt.Fprint(w, frame)
		}
	}))
	defer service.Close()

	model, err := gemini.New(gemini.Options{BaseURL: service.URL})
	if err != nil {
		panic(err)
	}
	request := inference.Request{Model: "some-model", Messages: []inference.Message{inference.User("Hello")}}
	for chunk, err := range model.Stream(context.Background(), request) {
		if err != nil {
			panic(err)
		}
		if chunk.Text != "" {
			fmt.Printf("%q\n", chunk.Text)
		}
	}
	// Output:
	// "Good "
	// "morning."
}

// Failures have classes that say what helps, and how long to wait.
func ExampleModel_Generate_failure() {
	service := local(failed(429, "RESOURCE_EXHAUSTED", "Too many requests.", retryIn("7s")))
	defer service.Close()

	model, err := gemini.New(gemini.Options{BaseURL: service.URL})
	if err != nil {
		panic(err)
	}
	_, err = model.Generate(context.Background(), inference.Request{Model: "some-model"})
	fmt.Println(err)
	fmt.Println(errors.Is(err, resilient.RateLimited))
	// Output:
	// gemini: model some-model: rate limited (status 429, code RESOURCE_EXHAUSTED, retry after 7s): Too many requests.
	// true
}
