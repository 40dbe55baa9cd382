package modeltest

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

// Provider is an adapter, and what its service says and understands. All fields but MidStream, Together, Update and
// Lacks must be filled in.
type Provider struct {
	// New makes a model as setup says, with the retries of the SDK turned off. It must be an [inference.Streamer] too.
	New func(t testing.TB, setup Setup) inference.Model
	// Model is a model's name for requests.
	Model string

	// Streams tells whether a request asks for a stream.
	Streams func(Wire) bool
	// Whole writes an answer in one piece. A Status of 0 is 200, and without a Content-Type it is application/json.
	Whole func(Answer) Reply
	// Stream writes an answer as a stream of frames, each with what separates it from the next. Text and arguments
	// are in frames of their own, piece by piece, and the last frames end the stream as the service does.
	Stream func(Answer) []string

	// Failures are the ways in which the service refuses. There must be at least one of each class in NeededClasses, and
	// one that repeats [Key].
	Failures []Failure
	// MidStream are the ways in which the service gives up in the middle of a stream; none if it has no way to say so.
	MidStream []Interruption

	// Fields says where in a request each field of an override is found. The kit knows which there must be, and asks
	// for two entries of the open map besides: "modeltest" with an object and "modeltest_null" with null.
	Fields map[inference.Field]Place
	// Efforts says what becomes of each effort, at the place that Fields has for it.
	Efforts map[inference.Effort]Place
	// Together is an override of all that may be set at once, where the service or the adapter refuses some fields or
	// some beside others; zero if everything may be. Its model is not looked at.
	Together inference.Override
	// Parts says what becomes of each sort of part in a user's message, by the names in PartNames.
	Parts map[string]Fate

	// Golden is the folder that holds the requests as they must be sent, such as "testdata/requests", and Update
	// writes it anew.
	Golden string
	Update bool

	Lacks Lacks
}

// Setup is what a model is made with.
type Setup struct {
	// BaseURL is where the service listens, without a slash at the end.
	BaseURL string
	Client  *http.Client
	// Key is a secret; it must be in no error.
	Key string
	// Warn is to be told of what is ignored with a warning, if the adapter ever does that.
	Warn func(error)
}

// Lacks says what a service does not have. The kit leaves out what needs it.
type Lacks struct {
	// SplitArgs: arguments come whole, even in a stream.
	SplitArgs bool
	// Interleave: a call is complete in the stream before the next begins.
	Interleave bool
	// CallIDs: calls have no ids on the wire; the adapter makes them up.
	CallIDs bool
	// MalformedArgs: arguments cannot be anything but JSON on the wire. MalformedWhole: not in answers in one piece.
	MalformedArgs, MalformedWhole bool
	// ErrorResults: a result cannot be marked as an error, so that only its text tells.
	ErrorResults bool
	// Reasoning: the service never shows what the model thinks.
	Reasoning bool
	// ImageAnswers: models answer with no images.
	ImageAnswers bool
	// Filtered: an answer cannot end because of a filter.
	Filtered bool
}

// Answer is what the model is to say. Strings may be in several pieces, which a stream sends one by one.
type Answer struct {
	Model     string
	Reasoning []string
	Text      []string
	Calls     []Call
	// Interleave asks that the calls' pieces take turns: first all first ones, then all second ones.
	Interleave bool
	// Image is an image with its data, if there is one.
	Image inference.Part
	Usage Usage
	Stop  inference.StopReason
	// Noise asks for members, items and events, wherever the protocol may get new ones, that no client knows yet.
	Noise bool
}

// Call is one call of a tool.
type Call struct {
	ID, Name string
	// Args is a JSON text in pieces.
	Args []string
}

// JSON returns the arguments in one piece.
func (c Call) JSON() string { return strings.Join(c.Args, "") }

// Pieces returns the pieces of all calls in the order in which a stream sends them.
func (a Answer) Pieces() []Piece {
	var out []Piece
	for call, c := range a.Calls {
		for i := range c.Args {
			out = append(out, Piece{call, i})
		}
	}
	if a.Interleave {
		slices.SortStableFunc(out, func(x, y Piece) int { return x.Index - y.Index })
	}
	return out
}

// Piece is one piece of one call's arguments: Answer.Calls[Call].Args[Index].
type Piece struct{ Call, Index int }

// Usage is counted as [inference.Usage] does: Cached is part of Input, and Reasoning is part of Output.
type Usage struct{ Input, Cached, Output, Reasoning int64 }

// Reply is an answer of the service in one piece.
type Reply struct {
	Status int
	Header map[string]string
	Body   string
}

// Failure is a way in which the service refuses a request, and what the adapter must make of it.
type Failure struct {
	// Name tells it from the others, such as "rate limit".
	Name  string
	Reply Reply
	Class resilient.Class
	// Code is what [resilient.Failure.Code] must be; "" if the service gives none.
	Code string
}

// Interruption is a frame by which the service gives up in mid stream, and what the adapter must make of it.
type Interruption struct {
	Name  string
	Frame string
	Class resilient.Class
	Code  string
}

// NeededClasses are the classes of which a Provider must have a Failure each. Failures of class RateLimited must
// come with a Retry-After of seven seconds.
var NeededClasses = []resilient.Class{
	resilient.RateLimited, resilient.Overloaded, resilient.ContextOverflow, resilient.BadRequest, resilient.Auth,
	resilient.NotFound, resilient.Transient,
}

// Place says what becomes of a field: it is at a place in the body, or it is refused, or warned of and left out.
type Place struct {
	// At is a JSON pointer into the request's body, such as "/generationConfig/topP".
	At string
	// InPath: it is in the request's path instead, as models are in some protocols.
	InPath bool
	// Value is what must be there, as JSON; "" is the field's own value.
	Value string
	// Refused: the call fails with a FieldError in its chain and nothing is sent.
	Refused bool
	// Warned: Setup.Warn gets a FieldError, and the field is left out.
	Warned bool
}

// Fate says what becomes of a part.
type Fate int

// The fates.
const (
	// Sent: the part is in the request.
	Sent Fate = iota + 1
	// Refused: the call fails and nothing is sent.
	Refused
)

// Wire is a request as it came.
type Wire struct {
	Method string
	// Path has the query too.
	Path   string
	Header http.Header
	Body   []byte
}
