package jsonschema

import (
	"cmp"
	"context"
	"fmt"
	"time"

	upstream "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ddd26017/fixpoint/inference"
)

// Options bound a Checker. A zero field has the default that is given with it.
type Options struct {
	Cache     int           // compiled schemas that are kept: 128; negative for none
	MaxSchema int           // bytes of a schema: 64 KiB
	MaxValue  int           // bytes of a value: 1 MiB
	Timeout   time.Duration // for one check, with what it waits for others: 5 s
}

const (
	// places is how many checks run at once, those given up on included.
	places = 16
	// Both bound the depth of the recursion, which is at most their product: a stack that
	// is exhausted cannot be recovered from.
	maxParts = 2000 // objects, lists and members of objects in a schema
	maxDepth = 64   // levels of a schema or value
)

// Checker checks values against JSON Schemas. It is safe for concurrent use. Make one
// with New.
type Checker struct {
	opts  Options
	cache *cache
	place chan struct{}
}

// New returns a checker.
func New(o Options) *Checker {
	o.Cache = cmp.Or(o.Cache, 128)
	o.MaxSchema = cmp.Or(o.MaxSchema, 64<<10)
	o.MaxValue = cmp.Or(o.MaxValue, 1<<20)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	return &Checker{opts: o, cache: newCache(o.Cache), place: make(chan struct{}, places)}
}

// CheckSchema returns nil if value fits schema, a *ValueError (ErrValue) if it does not,
// a *SchemaError (ErrSchema) if the schema is at fault, and ErrTimeout if it takes too
// long to say. The empty value is null.
func (c *Checker) CheckSchema(schema, value inference.JSON) error {
	switch {
	case len(schema) > c.opts.MaxSchema:
		return &SchemaError{Reason: fmt.Sprintf("it has %d bytes; the limit is %d", len(schema), c.opts.MaxSchema)}
	case len(value) > c.opts.MaxValue:
		return &ValueError{Faults: []Fault{{Reason: fmt.Sprintf("has more than %d bytes", c.opts.MaxValue)}}}
	}
	return c.within(func() error {
		s, err := c.compiled(schema)
		if err != nil {
			return err
		}
		doc, err := decode(value)
		if err != nil {
			return &ValueError{Faults: []Fault{{Reason: "is not JSON"}}}
		}
		if depth(doc, maxDepth) > maxDepth {
			return &ValueError{Faults: []Fault{{Reason: fmt.Sprintf("is more than %d levels deep", maxDepth)}}}
		}
		if f := beyond(doc); f != nil {
			return &ValueError{Faults: []Fault{*f}}
		}
		return valueFault(s.Validate(doc))
	})
}

// compiled returns the compiled form of a schema, or what is wrong with it. Both are
// kept.
func (c *Checker) compiled(schema inference.JSON) (*upstream.Schema, error) {
	if e, ok := c.cache.get(schema); ok {
		return e.schema, e.err
	}
	e := entry{key: schema}
	e.schema, e.err = compile(schema)
	c.cache.put(e)
	return e.schema, e.err
}

// within runs do for at most the time of a check. The schema and the value are others'
// input to a library that was written for neither, so that it may panic or hang.
func (c *Checker) within(do func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.opts.Timeout)
	defer cancel()
	select {
	case c.place <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%w: %d others take too long", ErrTimeout, places)
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-c.place }()
		err := error(&SchemaError{Reason: "the check ended without an answer"})
		defer func() {
			if r := recover(); r != nil {
				// What was panicked with may hold parts of the value.
				err = &SchemaError{Reason: fmt.Sprintf("the check panicked with a %T", r)}
			}
			done <- err
		}()
		err = do()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %v were not enough; make the schema simpler", ErrTimeout, c.opts.Timeout)
	}
}
