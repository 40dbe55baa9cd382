// Package inference holds the plain data that passes between an agent and a model: messages, tool calls and results,
// requests, responses, and the overrides that change one request. It knows no vendor and imports only the standard
// library.
//
// The smallest model is a function:
//
//	model := inference.ModelFunc(func(ctx context.Context, r inference.Request) (inference.Response, error) {
//		return inference.Response{Message: inference.Assistant("hello"), Stop: inference.StopEnd}, nil
//	})
//
// # Sharing
//
// Most types are comparable values that nobody can change behind another's back: [JSON], [Bytes] and [Extra] are
// strings inside. Only [Message], [Request] and [Response] hold slices. Their Clone methods copy whatever can change;
// whoever hands one to user code hands out a clone.
//
// # Unset and zero
//
// An [Opt] tells "not set" from zero. An [Override] is a set of such wishes. Overrides merge field by field, the last
// writer wins, and a field nobody mentions keeps its value; [Override.Without] takes a wish of a lower layer back.
// [Resolve] also says who decided each field.
//
// # JSON
//
// Everything has a JSON form with snake_case members. [JSON.Decode] is the strict way to read one: unknown members
// and trailing text are errors that carry an offset.
package inference
