package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// ProfileStore keeps values that belong to a user or an installation and not
// to a thread. It must be safe for concurrent use and must not keep or change
// the slices it is given.
type ProfileStore interface {
	// LoadProfile returns the saved bytes and their version, or nil and 0 when
	// there are none.
	LoadProfile(ctx context.Context, owner, name string) (raw []byte, version uint64, err error)
	// SaveProfile saves raw if the saved version is still base, and returns
	// the new version; otherwise it fails with an error that is ErrStale.
	SaveProfile(ctx context.Context, owner, name string, raw []byte, base uint64) (uint64, error)
}

// AnyProfileKey is a [ProfileKey] of any type. Only this package implements it.
type AnyProfileKey interface {
	Name() string
	profile()
}

// ProfileKey is a typed value in a [ProfileStore]. It is a small comparable
// handle, safe for concurrent use. The zero ProfileKey is not usable.
type ProfileKey[V any] struct{ d *profileDef[V] }

type profileDef[V any] struct {
	name string
	o    Options[V]
}

// NewProfileKey makes a profile key. Options.Scope, Clone, Shared and
// Transient are not used: every read decodes a value of its own.
func NewProfileKey[V any](name string, o Options[V]) ProfileKey[V] {
	return ProfileKey[V]{&profileDef[V]{name, o}}
}

// Name returns the name the key was made with.
func (k ProfileKey[V]) Name() string {
	if k.d == nil {
		return ""
	}
	return k.d.name
}

func (k ProfileKey[V]) profile() {}

// saved is the stored form of a profile value.
type saved struct {
	Version int             `json:"version"`
	Value   json.RawMessage `json:"value"`
}

// Get returns the owner's value, or the initial one if none was saved.
func (k ProfileKey[V]) Get(ctx context.Context, ps ProfileStore, owner string) (v V, err error) {
	raw, _, err := k.load(ctx, ps, owner)
	if err != nil {
		return v, err
	}
	return k.decode(raw)
}

// profileTries bounds the compare-and-set loop of Update.
const profileTries = 64

// Update replaces the owner's value by what fn makes of it, and returns that.
// fn must be pure, since it runs again when another writer was faster; after
// many such losses Update gives up with [ErrStale]. A refusal by
// Options.Check, or a panic in fn, is an *ApplyError and saves nothing.
func (k ProfileKey[V]) Update(ctx context.Context, ps ProfileStore, owner string, fn func(V) V) (V, error) {
	var none V
	for range profileTries {
		if ctx.Err() != nil {
			return none, context.Cause(ctx)
		}
		old, base, err := k.load(ctx, ps, owner)
		if err != nil {
			return none, err
		}
		next, raw, err := k.next(old, fn)
		if err != nil {
			return none, err
		}
		_, err = ps.SaveProfile(ctx, owner, k.d.name, raw, base)
		if err == nil {
			return next, nil
		}
		if !errors.Is(err, ErrStale) {
			return none, fmt.Errorf("state: cannot save profile key %q of %q: %w", k.d.name, owner, err)
		}
	}
	return none, fmt.Errorf("%w: profile key %q of %q changed %d times in a row, try again later", ErrStale, k.d.name, owner, profileTries)
}

func (k ProfileKey[V]) load(ctx context.Context, ps ProfileStore, owner string) ([]byte, uint64, error) {
	if k.d == nil || k.d.name == "" {
		return nil, 0, fmt.Errorf("%w: make a profile key with NewProfileKey and give it a name", ErrInvalidKey)
	}
	raw, base, err := ps.LoadProfile(ctx, owner, k.d.name)
	if err != nil {
		err = fmt.Errorf("state: cannot load profile key %q of %q: %w", k.d.name, owner, err)
	}
	return raw, base, err
}

// decode makes a value of its own from saved bytes, or the initial one.
func (k ProfileKey[V]) decode(raw []byte) (V, error) {
	var form saved
	v, err := guard(k.d.name, func() (v V, err error) {
		switch {
		case raw != nil:
			if err = json.Unmarshal(raw, &form); err == nil {
				err = refuseNewer(form.Version, k.d.o.Version)
			}
			if err == nil {
				v, err = k.d.o.decode(form.Value, form.Version)
			}
		case k.d.o.Initial != nil:
			v = k.d.o.Initial()
		}
		return v, err
	})
	if err != nil {
		return v, &DecodeError{Key: k.d.name, Version: form.Version, Offset: -1, Err: err}
	}
	return v, nil
}

// next returns the value after the saved one, and its saved form.
func (k ProfileKey[V]) next(raw []byte, fn func(V) V) (next V, form []byte, err error) {
	form, err = guard(k.d.name, func() ([]byte, error) {
		old, err := k.decode(raw)
		if err != nil {
			return nil, err
		}
		next = fn(old)
		if check := k.d.o.Check; check != nil {
			// fn may have changed old in place, so Check gets another one.
			if old, err = k.decode(raw); err == nil {
				err = check(old, next)
			}
			if err != nil {
				return nil, &ApplyError{Key: k.d.name, Err: err}
			}
		}
		value, err := k.d.o.Codec.encode(next)
		if err != nil {
			return nil, fmt.Errorf("state: cannot encode profile key %q: %w", k.d.name, err)
		}
		return json.Marshal(saved{k.d.o.Version, value})
	})
	return next, form, err
}
