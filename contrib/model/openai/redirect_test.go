package openai_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/model/openai"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

// TestRedirect: keys in headers do not follow to another host.
func TestRedirect(t *testing.T) {
	var asked []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked = append(asked, "elsewhere") }))
	defer elsewhere.Close()
	target := elsewhere.URL + "/v1/responses"
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked = append(asked, r.URL.Path); r.URL.Path == "/moved" {
			require.Equal(t, "secret-key", r.Header.Get("Api-Key"))
			yes(w, nil)
			return
		}
		w.Header().Set("Location", target)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	defer here.Close()
	m, err := openai.New(openai.Options{BaseURL: here.URL + "/v1", Header: http.Header{"Api-Key": {"secret-key"}}})
	require.NoError(t, err)
	r := inference.Request{Model: "m", Messages: hello}
	_, err = m.Generate(context.Background(), r)
	var f *resilient.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, http.StatusTemporaryRedirect, f.Status)
	_, err = inference.Collect(m.Stream(context.Background(), r))
	require.ErrorAs(t, err, &f)
	require.Equal(t, []string{"/v1/responses", "/v1/responses"}, asked)

	target = "/moved"
	_, err = m.Generate(context.Background(), r)
	require.NoError(t, err)
}
