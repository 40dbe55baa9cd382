package resilient

import (
	"cmp"
	"errors"
	"strings"
	"unicode"

	"github.com/ddd26017/fixpoint/inference"
)

// DefaultPrompt asks a model to go on with an answer that broke off.
const DefaultPrompt = "Your answer was cut off. Go on exactly where it stopped. Repeat nothing and do not comment on this."

// ErrDiverged: a stream broke off, and what was asked for once more began differently, so that the two could not be
// joined. See [Repeat].
var ErrDiverged = errors.New("resilient: the repeated answer differs from what was already passed on")

// How says in which way an answer is completed that broke off in mid stream.
type How uint8

// The ways.
const (
	// Fail does not complete it: the stream ends with the failure.
	Fail How = iota
	// Repeat asks the same again and passes on only what comes after the text that was passed on before. An answer
	// that begins differently ends the stream with ErrDiverged and the failure that broke the stream: models that are
	// asked the same twice seldom say the same, unless their temperature is 0.
	Repeat
	// Prefill asks again with the text so far as the last message, an assistant's, which the model takes for the
	// beginning of its answer. Not all services do.
	Prefill
	// Ask asks again with the text so far as an assistant's message, and behind it a user's that asks to go on.
	Ask
)

// Recovery says how an answer is completed whose stream broke off after some of its text was passed on; before that,
// the same is simply asked again. The zero Recovery does not complete it.
//
// With any other, text is passed on as it comes, and so are usage and the model's name, but reasoning, parts, tool
// calls and the stop reason are held back until their stream ended well, and dropped with a stream that broke. So no
// tool call that was not complete ever reaches the consumer, nor one of each of two attempts.
type Recovery struct {
	How How
	// Prompt is the user's message of Ask; "" means DefaultPrompt.
	Prompt string
}

func (y Recovery) valid() field {
	return field{"Recovery.How", y.How <= Ask, "one of Fail, Repeat, Prefill and Ask"}
}

// request returns what to ask after text was passed on, and what the answer may begin with that the consumer has.
func (y Recovery) request(r inference.Request, text string) (inference.Request, overlap) {
	r = r.Clone()
	switch y.How {
	case Repeat:
		return r, overlap{text: text, whole: true}
	case Prefill:
		return goOn(r, inference.Assistant(text), "")
	case Ask:
		return goOn(r, inference.Assistant(text), cmp.Or(y.Prompt, DefaultPrompt))
	default: // Fail: nothing was passed on
		return r, overlap{}
	}
}

// goOn adds to r what a model has said so far, and the message that asks to go on, if any.
func goOn(r inference.Request, said inference.Message, prompt string) (inference.Request, overlap) {
	if prompt != "" {
		if said.Text != "" {
			r.Messages = append(r.Messages, said, inference.User(prompt))
		}
		return r, overlap{}
	}
	// Services refuse a last message that ends in white space; the model may then begin with it.
	text := said.Text
	said.Text = strings.TrimRightFunc(text, unicode.IsSpace)
	if said.Text != "" {
		r.Messages = append(r.Messages, said)
	}
	return r, overlap{text: text[len(said.Text):]}
}

// overlap is text that the consumer has and that an answer may begin with.
type overlap struct {
	text  string
	whole bool // the answer must begin with all of it
}

// cut returns text without the part of it that the consumer has, and whether that is as it must be.
func (o *overlap) cut(text string) (rest string, ok bool) {
	n := 0
	for n < len(text) && n < len(o.text) && text[n] == o.text[n] {
		n++
	}
	o.text = o.text[n:]
	if n < len(text) && o.text != "" {
		if o.whole {
			return "", false
		}
		o.text = ""
	}
	return text[n:], true
}
