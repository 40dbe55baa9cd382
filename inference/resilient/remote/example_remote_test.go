package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/ddd26017/fixpoint/inference/resilient"
	"github.com/ddd26017/fixpoint/inference/resilient/remote"
)

// An adapter says how its service complains, and no more.
func Example() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"code": "too_fast", "message": "not so fast, acme-1234-5678"}`)
	}))
	defer service.Close()
	at, err := remote.Endpoint{Provider: "acme", BaseURL: service.URL, Key: "acme-1234-5678"}.Resolve()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	answer, err := remote.Staying(http.DefaultClient).Get(at.BaseURL)
	if err == nil {
		defer answer.Body.Close()
		err = errors.New("what the service sent is no answer")
	}
	x := remote.Exchange{Provider: at.Provider, Model: "m", Response: answer, Secrets: remote.SecretsOf(at.Key, nil)}
	failure := x.Failure(ctx, err, func(status int) (remote.Complaint, bool) {
		var said struct{ Code, Message string }
		if status == 0 || json.NewDecoder(answer.Body).Decode(&said) != nil {
			return remote.Complaint{}, false
		}
		return remote.Complaint{Class: resilient.ClassOfStatus(status), Code: said.Code, Message: said.Message}, true
	})
	fmt.Println(failure)
	// Output: acme: model m: rate limited (status 429, code too_fast, retry after 7s): not so fast, [key]
}
