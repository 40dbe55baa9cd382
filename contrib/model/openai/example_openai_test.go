package openai_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/ddd26017/fixpoint/contrib/model/modeltest"
	"github.com/ddd26017/fixpoint/contrib/model/openai"
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

// An agent asks a service that speaks the Responses protocol.
func Example() {
	service := local(wholeResponse(modeltest.Answer{Text: []string{"Good morning."}, Stop: inference.StopEnd}))
	defer service.Close()

	model, err := openai.New(openai.Options{BaseURL: service.URL + "/v1", Model: "some-model"})
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
		for _, frame := range streamedCompletion(modeltest.Answer{Text: []string{"Good ", "morning."}, Stop: inference.StopEnd}) {
			fmt.Fprint(w, frame)
		}
	}))
	defer service.Close()

	model, err := openai.New(openai.Options{BaseURL: service.URL + "/v1", API: openai.ChatCompletions})
	if err != nil {
		panic(err)
	}
	request := inference.Request{Model: "llama", Messages: []inference.Message{inference.User("Hello")}}
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

// Failures have classes that say what helps.
func ExampleModel_Generate_failure() {
	service := local(failed(400, "invalid_request_error", "context_length_exceeded", "Your input exceeds the context window of this model."))
	defer service.Close()

	model, err := openai.New(openai.Options{BaseURL: service.URL + "/v1"})
	if err != nil {
		panic(err)
	}
	_, err = model.Generate(context.Background(), inference.Request{Model: "some-model"})
	fmt.Println(err)
	fmt.Println(errors.Is(err, resilient.ContextOverflow))
	// Output:
	// openai: model some-model: context overflow (status 400, code context_length_exceeded): Your input exceeds the context window of this model.
	// true
}
