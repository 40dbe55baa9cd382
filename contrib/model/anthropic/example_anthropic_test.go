package anthropic_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/ddd26017/fixpoint/contrib/model/anthropic"
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

// An agent asks a service that speaks the Messages API.
func Example() {
	service := local(wholeMessage(modeltest.Answer{Text: []string{"Good morning."}, Stop: inference.StopEnd}))
	defer service.Close()

	model, err := anthropic.New(anthropic.Options{BaseURL: service.URL, Model: "some-model"})
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
		answer := modeltest.Answer{Reasoning: []string{"Somebody is up early."}, Text: []string{"Good ", "morning."}, Stop: inference.StopEnd}
		for _, frame := range streamedMessage(answer) {
			fmt.Fprint(w, frame)
		}
	}))
	defer service.Close()

	model, err := anthropic.New(anthropic.Options{BaseURL: service.URL})
	if err != nil {
		panic(err)
	}
	request := inference.Request{Model: "some-model", Messages: []inference.Message{inference.User("Hello")}}
	for chunk, err := range model.Stream(context.Background(), request) {
		switch {
		case err != nil:
			panic(err)
		case chunk.Reasoning != "":
			fmt.Printf("(%s)\n", chunk.Reasoning)
		case chunk.Text != "":
			fmt.Printf("%q\n", chunk.Text)
		}
	}
	// Output:
	// (Somebody is up early.)
	// "Good "
	// "morning."
}

// Failures have classes that say what helps.
func ExampleModel_Generate_failure() {
	service := local(failed(529, "overloaded_error", "Overloaded"))
	defer service.Close()

	model, err := anthropic.New(anthropic.Options{BaseURL: service.URL})
	if err != nil {
		panic(err)
	}
	_, err = model.Generate(context.Background(), inference.Request{Model: "some-model"})
	fmt.Println(err)
	fmt.Println(errors.Is(err, resilient.Overloaded))
	// Output:
	// anthropic: model some-model: overloaded (status 529, code overloaded_error): Overloaded
	// true
}
