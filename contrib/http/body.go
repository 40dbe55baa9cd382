package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
)

// body reads a request's body, which must be JSON.
func (s *Server) body(w http.ResponseWriter, r *http.Request) (inference.JSON, error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := params["charset"]; err != nil || kind != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return "", refuse(http.StatusUnsupportedMediaType, "not_json", "send the body as Content-Type: application/json")
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.options.Limits.Body))
	if err != nil {
		return "", unread(err, s.options.Limits.Body)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return "", malformed(0, "the body is empty")
	}
	return inference.JSON(text), nil
}

func unread(err error, limit int64) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return refuse(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body is longer than %d bytes", limit))
	}
	return refuse(http.StatusBadRequest, "unreadable", "the body could not be read")
}

func malformed(position int64, message string) *fault {
	f := refuse(http.StatusBadRequest, "bad_json", message)
	f.Position = &position
	return f
}

// strict reads a body into v: what v does not have, and anything behind the value, is a
// fault.
func (s *Server) strict(w http.ResponseWriter, r *http.Request, v any) (inference.JSON, error) {
	text, err := s.body(w, r)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(string(text)) == "null" {
		return "", malformed(0, "the body is null; send an object")
	}
	return text, positioned(text.Decode(v))
}

// lenient reads a body into v, and leaves out what v does not have.
func (s *Server) lenient(w http.ResponseWriter, r *http.Request, v any) (inference.JSON, error) {
	text, err := s.body(w, r)
	if err != nil {
		return "", err
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	if err := d.Decode(v); err != nil {
		return "", malformed(d.InputOffset(), err.Error())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return "", malformed(d.InputOffset(), "there is something behind the value")
	}
	return text, nil
}

// positioned makes a fault of what is wrong with a body.
func positioned(err error) error {
	if err == nil {
		return nil
	}
	var where *inference.JSONError
	if errors.As(err, &where) {
		return malformed(where.Offset, where.Err.Error())
	}
	return malformed(0, err.Error())
}

// bodyless refuses a body where none is expected.
func bodyless(r *http.Request) error {
	if n, err := io.CopyN(io.Discard, r.Body, 1); n > 0 || err != nil && !errors.Is(err, io.EOF) {
		return refuse(http.StatusBadRequest, "body", "send this request without a body")
	}
	return nil
}
