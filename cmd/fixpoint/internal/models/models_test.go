package models_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/models"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

// fault tells faults without their places.
func fault(_ int, field, format string, args ...any) error {
	return fmt.Errorf(field+": "+format, args...)
}

// Each provider is asked by its own protocol, with the model's name and the key of its
// own variable.
func TestProviders(t *testing.T) {
	var mu sync.Mutex
	var path, key string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		path = r.URL.Path
		key = r.Header.Get("Authorization") + r.Header.Get("X-Api-Key") + r.Header.Get("X-Goog-Api-Key")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	for id, want := range map[string]struct{ path, key, variable, endpoint string }{
		"openai:big":    {"/responses", "Bearer k-1", "OPENAI_API_KEY", "OPENAI_BASE_URL"},
		"anthropic:big": {"/v1/messages", "k-1", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"},
		"gemini:big":    {"/models/big:streamGenerateContent", "k-1", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"},
	} {
		spec := engine.AgentSpec{ID: "x", ModelID: id}
		none := models.Source{Env: func(string) string { return "" }}
		_, err := none.Make([]engine.AgentSpec{spec}, fault)
		require.ErrorContains(t, err, "set the environment variable "+want.variable+", or name an endpoint in "+want.endpoint)

		source := models.Source{Env: func(name string) string {
			return map[string]string{want.variable: "k-1", want.endpoint: server.URL}[name]
		}}
		made, err := source.Make([]engine.AgentSpec{spec}, fault)
		require.NoError(t, err)
		m := made[id].(inference.Streamer)
		_, err = inference.Collect(m.Stream(t.Context(), inference.Request{Model: id, Messages: []inference.Message{inference.User("hi")}}))
		require.ErrorIs(t, err, resilient.Auth, id)
		mu.Lock()
		require.True(t, strings.HasSuffix(path, want.path), path)
		require.Equal(t, want.key, key)
		mu.Unlock()
	}
}
