package effects

// Effect is a message to the outside world that has not been sent. It is an immutable value: copies are equal, and
// nobody can change what it carries. Put it into a command; it is delivered after the commit of that command.
type Effect struct {
	kind    *kind
	payload any // frozen, or a value that nobody can change
	err     error
}

// frozen is a payload as JSON.
type frozen string

// Name returns the name of its spec, or "" for the zero Effect.
func (e Effect) Name() string { return e.kind.title() }

// Durable reports whether its spec says that it must not be lost; see the option [Durable].
func (e Effect) Durable() bool { return e.kind != nil && e.kind.durable }

// Err returns why the effect cannot be sent, or nil: its payload could not be frozen ([PayloadError]), or it is the
// zero Effect ([UnknownEffectError]).
func (e Effect) Err() error {
	if e.Name() == "" {
		return &UnknownEffectError{}
	}
	return e.err
}

// Payload returns the payload for traces, or nil if there is none or it cannot be decoded. The caller may keep or
// change it. Use [Spec.Payload] where the type is known.
func (e Effect) Payload() any {
	v, _ := e.thaw()
	return v
}

// JSON returns the payload as JSON, for traces and outboxes. [Handlers.Restore] makes an effect of it again.
func (e Effect) JSON() ([]byte, error) {
	if err := e.Err(); err != nil {
		return nil, err
	}
	if text, ok := e.payload.(frozen); ok {
		return []byte(text), nil
	}
	return e.kind.encode(e.payload)
}

// String returns the effect's name.
func (e Effect) String() string { return e.Name() }

func (e Effect) thaw() (any, error) {
	if err := e.Err(); err != nil {
		return nil, err
	}
	if text, ok := e.payload.(frozen); ok {
		return e.kind.decode([]byte(text))
	}
	return e.payload, nil
}
