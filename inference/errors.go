package inference

import (
	"errors"
	"fmt"
)

// The errors of this package. Each is the sentinel of a struct that holds the particulars, so test with [errors.Is]
// and read the details with [errors.As].
var (
	// ErrBadJSON: a text is not JSON, or does not fit the value it was decoded into. See [JSONError].
	ErrBadJSON = errors.New("inference: bad JSON")
	// ErrBadField: a parameter, an override or a tool result has a field with an unusable value. See [FieldError].
	ErrBadField = errors.New("inference: bad field")
	// ErrBadResponse: a model answered with something that cannot be acted on. See [ResponseError].
	ErrBadResponse = errors.New("inference: bad response")
)

// JSONError says where a text stopped being acceptable JSON, and why. It matches [ErrBadJSON].
type JSONError struct {
	// Offset is the number of bytes read when the fault was found. For an unknown field that is the end of the value.
	Offset int64
	// Err is the cause, as encoding/json words it.
	Err error
}

// Error implements error.
func (e *JSONError) Error() string {
	return fmt.Sprintf("inference: bad JSON at offset %d: %v", e.Offset, e.Err)
}

// Is reports whether target is [ErrBadJSON].
func (e *JSONError) Is(target error) bool { return target == ErrBadJSON }

// Unwrap returns the cause.
func (e *JSONError) Unwrap() error { return e.Err }

// FieldError names a field with an unusable value and says what is allowed. It matches [ErrBadField].
type FieldError struct {
	Field Field
	// Value is the refused value as text.
	Value string
	// Want says which values are allowed.
	Want string
}

// Error implements error.
func (e *FieldError) Error() string {
	return fmt.Sprintf("inference: field %q is %s; want %s", string(e.Field), e.Value, e.Want)
}

// Is reports whether target is [ErrBadField].
func (e *FieldError) Is(target error) bool { return target == ErrBadField }

// ResponseError says why a response cannot be acted on. It matches [ErrBadResponse].
type ResponseError struct {
	// Call is the position of the guilty tool call, or -1 when the response as a whole is at fault.
	Call int
	// CallID is the id of that call, if it has one.
	CallID string
	// Reason says what is wrong.
	Reason string
}

// Error implements error.
func (e *ResponseError) Error() string {
	if e.Call < 0 {
		return "inference: bad response: " + e.Reason
	}
	return fmt.Sprintf("inference: bad response: tool call %d (id %q): %s", e.Call, e.CallID, e.Reason)
}

// Is reports whether target is [ErrBadResponse].
func (e *ResponseError) Is(target error) bool { return target == ErrBadResponse }
