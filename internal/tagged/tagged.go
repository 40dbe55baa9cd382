package tagged

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Marshal returns v, which encoding/json must write as an object that is not empty
// and has no member "type", as one line with the type in front. It leaves <, > and
// & readable. The name must need no escapes.
func Marshal(name string, v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	members := bytes.TrimSuffix(buf.Bytes()[1:], []byte("\n"))
	return slices.Concat([]byte(`{"type":"`), []byte(name), []byte(`",`), members), nil
}

// Split takes the leading "type" member off the object in data, which the caller
// then decodes. It checks no more of the rest than it has to. The name is returned
// with an error too, as far as it is known.
func Split(data []byte) (name string, object []byte, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	for _, want := range []json.Token{json.Delim('{'), "type"} {
		got, err := dec.Token()
		if err != nil {
			return "", nil, err
		}
		if got != want {
			return "", nil, fmt.Errorf("found %v where %v must be; want an object that starts with its type", got, want)
		}
	}
	got, err := dec.Token()
	if err != nil {
		return "", nil, err
	}
	name, ok := got.(string)
	if !ok {
		return "", nil, fmt.Errorf("the type is %v; it must be a string", got)
	}
	rest := bytes.TrimLeft(data[dec.InputOffset():], " \t\r\n")
	switch {
	case bytes.HasPrefix(rest, []byte("}")):
	case bytes.HasPrefix(rest, []byte(",")):
		rest = bytes.TrimLeft(rest[1:], " \t\r\n")
		if bytes.HasPrefix(rest, []byte("}")) {
			return name, nil, errors.New("a comma without a member behind it")
		}
	default:
		return name, nil, errors.New("neither a comma nor the end of the object behind the type")
	}
	return name, slices.Concat([]byte{'{'}, rest), nil
}

// Decode reads an object that Split returned into the value v points to. It is
// strict: a member v does not have, and anything after the object, is an error. v
// may then be half filled.
func Decode(object []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(object))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the object; give exactly one")
	}
	return nil
}
