package serve

import (
	_ "embed"
	"net/http"
)

//go:embed openapi.json
var openapi []byte

// OpenAPI returns the description of the routes, an OpenAPI 3.1 document in JSON. The
// slice is the caller's.
func OpenAPI() []byte { return append([]byte(nil), openapi...) }

// describe answers with the description of the routes.
func (s *Server) describe(_ caller, w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openapi) // the client may be gone
	return nil
}
