package inference

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// JSON is a JSON text: tool arguments, a schema, a vendor's block. It is a string, so it is comparable and nobody who
// holds one can change what another holder sees. The empty text stands for null.
//
// A JSON may hold text that is no JSON at all, because models write such things: [JSON.Valid] tells.
type JSON string

// ToJSON encodes v. Unlike [json.Marshal] it leaves <, > and & readable.
func ToJSON(v any) (JSON, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", fmt.Errorf("inference: value of type %T cannot be written as JSON: %w", v, err)
	}
	return JSON(bytes.TrimSuffix(buf.Bytes(), []byte("\n"))), nil
}

// Valid reports whether j is one well-formed JSON value. The empty text is valid.
func (j JSON) Valid() bool { return j == "" || json.Valid([]byte(j)) }

// Decode reads j into the value v points to. It is strict: a field v does not have, and anything after the first
// value, is an error. The error is a [*JSONError] with the offset of the fault; v may then be half filled.
func (j JSON) Decode(v any) error { return j.read(v, (*json.Decoder).DisallowUnknownFields) }

func (j JSON) read(v any, strictness func(*json.Decoder)) error {
	text := cmp.Or(string(j), "null")
	dec := json.NewDecoder(strings.NewReader(text))
	strictness(dec)
	if err := dec.Decode(v); err != nil {
		return jsonError(err, dec.InputOffset(), len(text))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return &JSONError{Offset: dec.InputOffset(), Err: errors.New("text after the value; send exactly one JSON value")}
	}
	return nil
}

// Compact returns j without insignificant white space. A text that is not JSON is returned as it is.
func (j JSON) Compact() JSON {
	var buf bytes.Buffer
	if json.Compact(&buf, []byte(j)) != nil {
		return j
	}
	return JSON(buf.String())
}

// Canonical returns the one text that stands for j's value: compact, members sorted by name, strings escaped in one
// way, numbers as written. Hash this form, not j: saving and loading may change white space and escapes. Of members
// with one name the last counts. A text that is not JSON is a [*JSONError].
func (j JSON) Canonical() (JSON, error) {
	var v any
	if err := j.read(&v, (*json.Decoder).UseNumber); err != nil {
		return "", err
	}
	return ToJSON(v)
}

// MarshalJSON embeds the text itself; the empty text is null. encoding/json removes white space and refuses a text
// that is not JSON.
func (j JSON) MarshalJSON() ([]byte, error) { return []byte(cmp.Or(j, "null")), nil }

// UnmarshalJSON keeps the text as it is; null becomes the empty text.
func (j *JSON) UnmarshalJSON(text []byte) error {
	*j = JSON(text)
	if *j == "null" {
		*j = ""
	}
	return nil
}

func jsonError(err error, read int64, size int) error {
	var syntax *json.SyntaxError
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		read = syntax.Offset
	case errors.As(err, &wrongType):
		read = wrongType.Offset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		read, err = int64(size), io.ErrUnexpectedEOF
	}
	return &JSONError{Offset: read, Err: err}
}
