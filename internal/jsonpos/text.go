package jsonpos

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
)

// Decode reads a text, which must be exactly one JSON value, into the value v
// points to, with a decoder that setup may adjust. With an error it returns how
// many bytes were read when the fault was found; for an unknown field that is the
// end of the value. v may then be half filled.
func Decode(text string, v any, setup func(*json.Decoder)) (offset int64, err error) {
	if text == "{}" && fieldwise(v) {
		return int64(len(text)), nil // no field is there: spares the decoder
	}
	dec := json.NewDecoder(strings.NewReader(text))
	setup(dec)
	if err := dec.Decode(v); err != nil {
		var syntax *json.SyntaxError
		var wrongType *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			return syntax.Offset, err
		case errors.As(err, &wrongType):
			return wrongType.Offset, err
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return int64(len(text)), io.ErrUnexpectedEOF
		}
		return dec.InputOffset(), err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return dec.InputOffset(), errors.New("text after the value; send exactly one JSON value")
	}
	return dec.InputOffset(), nil
}

// fieldwise reports whether v points to a struct that is decoded field by field.
func fieldwise(v any) bool {
	switch v.(type) {
	case json.Unmarshaler, encoding.TextUnmarshaler:
		return false
	}
	to := reflect.ValueOf(v)
	return to.Kind() == reflect.Pointer && !to.IsNil() && to.Elem().Kind() == reflect.Struct
}

// Encode returns v as JSON in one line. Unlike json.Marshal it leaves <, > and &
// readable.
func Encode(v any) (string, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return string(bytes.TrimSuffix(text.Bytes(), []byte("\n"))), nil
}
