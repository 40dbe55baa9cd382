package serve_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	serve "github.com/ddd26017/fixpoint/contrib/http"
	"github.com/ddd26017/fixpoint/enginetest"
)

// operation is one that the API's description has.
type operation struct{ method, path string }

func operations(t testing.TB) (all []operation) {
	t.Helper()
	var doc struct {
		OpenAPI string                                `json:"openapi"`
		Paths   map[string]map[string]json.RawMessage `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(serve.OpenAPI(), &doc))
	require.Equal(t, "3.1.0", doc.OpenAPI)
	for path, methods := range doc.Paths {
		for method := range methods {
			if method != "parameters" {
				all = append(all, operation{method, path})
			}
		}
	}
	slices.SortFunc(all, func(a, b operation) int {
		if a.path+a.method < b.path+b.method {
			return -1
		}
		return 1
	})
	return all
}

// What is described is there, under that method and no other, and the other way round.
func TestDescription(t *testing.T) {
	s := open(t, config(enginetest.NewScript()), serve.Options{})
	byPath := map[string][]string{}
	for _, o := range operations(t) {
		byPath[o.path] = append(byPath[o.path], o.method)
	}
	require.Len(t, operations(t), serve.Routes(s.Server))
	for path, methods := range byPath {
		r := s.do(t, "TRACE", path, "")
		require.Equal(t, http.StatusMethodNotAllowed, r.status, path)
		want := map[string]string{"get": "GET, HEAD", "post": "POST", "delete,get": "DELETE, GET, HEAD"}
		slices.Sort(methods)
		key := methods[0]
		if len(methods) > 1 {
			key += "," + methods[1]
		}
		require.Equal(t, want[key], r.header.Get("Allow"), path)
	}
	require.Equal(t, string(serve.OpenAPI()), s.do(t, "GET", "/v1/openapi.json", "").body)
}
