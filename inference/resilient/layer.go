package resilient

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/ddd26017/fixpoint/inference"
)

// Layer is what [Wrap] puts around a model: a [Timeout], a [Retry], a [*Breaker] or a [Continue].
type Layer interface {
	// Validate returns an error that says which field has an unusable value, and what is allowed.
	Validate() error
	wrap(m inference.Model) inference.Model
}

// Wrap puts layers around a model, the first one nearest to it, and returns the model that this makes. It streams if m
// does, and is no [inference.Streamer] if m is none. The error joins what the layers' Validate methods return; a model
// or a layer that is nil is an error, too.
//
// Panics of m pass through every layer, and so do those of the functions that layers are given.
func Wrap(m inference.Model, layers ...Layer) (inference.Model, error) {
	if m == nil {
		return nil, errors.New("resilient: there is no model to wrap")
	}
	var faults []error
	for i, l := range layers {
		if l == nil {
			faults = append(faults, fmt.Errorf("resilient: layer %d is nil", i))
			continue
		}
		faults = append(faults, l.Validate())
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	for _, l := range layers {
		m = l.wrap(m)
	}
	return m, nil
}

type (
	generateFunc = func(context.Context, inference.Request) (inference.Response, error)
	streamFunc   = func(context.Context, inference.Request) iter.Seq2[inference.Chunk, error]
)

// streaming is a model that can stream; one that cannot is an [inference.ModelFunc].
type streaming struct {
	inference.ModelFunc
	stream streamFunc
}

func (s streaming) Stream(ctx context.Context, r inference.Request) iter.Seq2[inference.Chunk, error] {
	return s.stream(ctx, r)
}

// around makes a model of two functions. The second is used if inner streams.
func around(inner inference.Model, generate generateFunc, stream func(s inference.Streamer) streamFunc) inference.Model {
	if s, ok := inner.(inference.Streamer); ok {
		return streaming{generate, stream(s)}
	}
	return inference.ModelFunc(generate)
}

// field is one value of a layer that has to be in bounds.
type field struct {
	name string
	ok   bool
	want string
}

// check returns an error for each of a layer's fields that is out of bounds.
func check(layer string, fields ...field) error {
	var faults []error
	for _, f := range fields {
		if !f.ok {
			faults = append(faults, fmt.Errorf("resilient: %s.%s must be %s", layer, f.name, f.want))
		}
	}
	return errors.Join(faults...)
}
