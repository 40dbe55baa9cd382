// Package schema makes tools of Go functions: the JSON Schema that the model sees is
// derived from the type of the arguments, and arguments that do not fit it never reach
// the function.
//
//	type Booking struct {
//		City   string `json:"city" description:"Where to stay."`
//		Nights int    `json:"nights" minimum:"1" maximum:"30" default:"1"`
//		Board  string `json:"board,omitempty" enum:"none,half,full"`
//	}
//
//	book, err := schema.Tool(inference.ToolSpec{Name: "book", Description: "Book a room."},
//		func(ctx context.Context, b Booking) (string, error) { return "booked " + b.City, nil })
//
// [ContextTool] is for functions that want the *phase.Context, or commit commands.
//
// # The schema
//
// It is of draft 2020-12, and the same text every time. It follows encoding/json: names
// are those of the json tags, embedded structs are part of the struct around them, and
// fields that encoding/json does not read are not there. Other members are refused.
//
//   - A field is required unless its json tag has omitempty or omitzero, or it has a default.
//   - A pointer may be null. Nothing else may, although encoding/json would let it pass.
//   - Integers of 8, 16 and 32 bits have their bounds, and unsigned ones are not negative.
//   - time.Time is a text of the format date-time, time.Duration a number of nanoseconds,
//     []byte a text in base64, and a type with a method UnmarshalText a text.
//   - any, json.RawMessage and inference.JSON may be anything.
//   - A field with the json option "string" is a text with a number, or true or false, in it:
//     for identifiers that a model, or what is between, would round.
//   - Maps have keys that are texts, integers or have a method UnmarshalText.
//   - A type that holds values of itself becomes a definition that is referred to.
//   - A type with a method UnmarshalJSON says by [Described] what it reads; any type may.
//
// Channels, functions, complex numbers and interfaces with methods are errors, and so is
// a field that encoding/json would drop, because another one has its name or the struct
// that it is of is embedded twice. Errors have the path of the field in Go.
//
// Not all of this is taken by all services. OpenAI's strict mode wants every member
// required: pointers without omitempty and no defaults, and no maps. Gemini wants fields
// that lead to a value of their own struct to be optional. The text keeps to what both
// ask of references: there is nothing beside them.
//
// # Tags
//
// A tag of a field has the name of the keyword: description, default, enum (separated by
// commas), minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, minLength,
// maxLength, pattern (in the syntax of package regexp), format, minItems, maxItems,
// uniqueItems, minProperties and maxProperties. One that says nothing about the field
// itself is about the items of the list or the values of the map: enum:"a,b" on a
// []string. A tag that fits nowhere, cannot be read, or has a value that the schema or
// the type itself refuses is an error.
//
// # Arguments
//
// They are checked before the gates, again after a gate or a person has edited them, and
// again when the call runs: against the schema, then for names that are there twice or
// are written with other capitals, then by decoding them. 3.0 is an integer to the schema,
// but not to encoding/json: it is refused.
// Two names that are one key of a map are refused too, and whole numbers in an any that
// would lose digits there: in a json.RawMessage, inference.JSON or json.Number they do not.
// No arguments are those of the empty object. They may have 1 MiB and 100,000 values and
// be 64 levels deep, and numbers in them 4,000 digits and exponents of up to 400.
//
// A model is told up to eight faults at once, in one line:
//
//	arguments of book: /city: is missing; /nights: is less than 1, found 0
//
// Numbers that were found are repeated, but no texts, which may be secrets. What a method
// UnmarshalText or UnmarshalJSON says is passed on.
//
// A default takes the place of a member that is not there, at any depth and in defaults,
// when the arguments are decoded. Gates, and what is kept of the call, see what the model wrote.
//
// # Results
//
// A string is the content of the result, and an engine.Output is the whole of it. Any
// other value becomes the details of the result as JSON, and its content too, unless it
// is a fmt.Stringer, whose text is the content then. inference.ToolSpec has no place for
// the schema of a result. How long a result may be is up to the function. One that cannot
// be written is an error that says that the call was made.
package schema
