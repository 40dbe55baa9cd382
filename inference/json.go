package inference

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

// JSON is a JSON text: tool arguments, a schema, a vendor's block. It is a string, so it is comparable and nobody who
// holds one can change what another holder sees. The empty text stands for null.
//
// A JSON may hold text that is no JSON at all, because models write such things: [JSON.Valid] tells.
type JSON string

// ToJSON encodes v. Unlike [json.Marshal] it leaves <, > and & readable.
func ToJSON(v any) (JSON, error) {
	text, err := jsonpos.Encode(v)
	if err != nil {
		return "", fmt.Errorf("inference: value of type %T cannot be written as JSON: %w", v, err)
	}
	return JSON(text), nil
}

// Valid reports whether j is one well-formed JSON value. The empty text is valid.
func (j JSON) Valid() bool { return j == "" || json.Valid([]byte(j)) }

// Decode reads j into the value v points to. It is strict: a field v does not have, and anything after the first
// value, is an error. The error is a [*JSONError] with the offset of the fault; v may then be half filled.
func (j JSON) Decode(v any) error { return j.read(v, (*json.Decoder).DisallowUnknownFields) }

func (j JSON) read(v any, strictness func(*json.Decoder)) error {
	offset, err := jsonpos.Decode(cmp.Or(string(j), "null"), v, strictness)
	if err != nil {
		return &JSONError{Offset: offset, Err: err}
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
	if j == "{}" {
		return j, nil // as of every call without arguments
	}
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
