package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
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
func (k ProfileKey[V]) Get(ctx context.Context, ps ProfileStore, owner string) (V, error) {
	v, _, err := k.load(ctx, ps, owner)
	return v, err
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
		if err := ctx.Err(); err != nil {
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

func (k ProfileKey[V]) load(ctx context.Context, ps ProfileStore, owner string) (v V, base uint64, err error) {
	if k.d == nil || k.d.name == "" {
		return v, 0, fmt.Errorf("%w: make a profile key with NewProfileKey and give it a name", ErrInvalidKey)
	}
	raw, base, err := ps.LoadProfile(ctx, owner, k.d.name)
	if err != nil {
		return v, 0, fmt.Errorf("state: cannot load profile key %q of %q: %w", k.d.name, owner, err)
	}
	var form saved
	err = guard(func() (err error) {
		if raw == nil {
			if k.d.o.Initial != nil {
				v = k.d.o.Initial()
			}
			return nil
		}
		if err := json.Unmarshal(raw, &form); err != nil {
			return err
		}
		v, err = decodeVersion(k.d.o.Codec, form.Version, k.d.o.Version, k.d.o.Migrate, form.Value)
		return err
	})
	if err != nil {
		var none V
		return none, 0, &DecodeError{Key: k.d.name, Version: form.Version, Offset: -1, Err: err}
	}
	return v, base, nil
}

func (k ProfileKey[V]) next(old V, fn func(V) V) (next V, raw []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			cause, _ := v.(error)
			err = &ApplyError{Key: k.d.name, Value: v, Err: cause, Stack: debug.Stack()}
		}
	}()
	before := old
	if check := k.d.o.Check; check != nil && CheckAlias[V]() != nil {
		// fn may change old in place, so Check gets a value that it cannot reach.
		if raw, err = k.d.o.Codec.encode(old); err != nil {
			return next, nil, fmt.Errorf("state: cannot encode profile key %q: %w", k.d.name, err)
		}
		if before, err = k.d.o.Codec.decode(raw); err != nil {
			return next, nil, &DecodeError{Key: k.d.name, Version: k.d.o.Version, Offset: -1, Err: err}
		}
	}
	next = fn(old)
	if check := k.d.o.Check; check != nil {
		if err := check(before, next); err != nil {
			return next, nil, &ApplyError{Key: k.d.name, Err: err}
		}
	}
	value, err := k.d.o.Codec.encode(next)
	if err == nil {
		raw, err = json.Marshal(saved{k.d.o.Version, value})
	}
	if err != nil {
		return next, nil, fmt.Errorf("state: cannot encode profile key %q: %w", k.d.name, err)
	}
	return next, raw, nil
}
