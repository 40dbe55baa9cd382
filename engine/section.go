package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/jsonpos"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

// ConfigKey names a section of agent specs and the type of its settings. It is a
// package-level value; a plugin registers it with Registrar.Section and reads it
// with Get. It is safe for concurrent use.
//
// Sections are decoded and checked before anything runs. Decoding is strict:
// member names are those of the json tags to the letter, and an unknown one, a
// wrong type or a null where there can be none is a *SpecError with its place.
type ConfigKey[C any] struct{ def *sectionDef[C] }

// ConfigOptions adjust a section. The zero value is useful.
type ConfigOptions[C any] struct {
	// Default returns the settings of a spec without the section. A section is
	// decoded on top of it, so that what it leaves out keeps its default; entries of
	// a map are added to those of the default. Nil means the zero C. If C holds
	// references the default travels as JSON, and what JSON does not carry is lost.
	Default func() C
	// Check refuses settings that make no sense. It is asked about the default too
	// when the plugin is active, so it can require a section.
	Check func(C) error
}

// AnyConfigKey is a ConfigKey of any type, as Registrar.Section takes it. It is
// sealed.
type AnyConfigKey interface {
	// Name returns the name of the section.
	Name() string
	// decode reads raw, the empty text being null, and reports its faults to f, at
	// being where the section is. The result is for phase.NewAgentInfo.
	decode(f *faults, at jsonpos.Path, plugin string, raw inference.JSON, check bool) any
}

type sectionDef[C any] struct {
	name string
	ConfigOptions[C]
	aliases bool // a C holds references, so every reader gets its own
}

// section returns the decoded settings, which are the caller's.
type section[C any] func() (C, error)

// NewConfigKey declares a section. The name is unique per engine.
func NewConfigKey[C any](name string, o ConfigOptions[C]) ConfigKey[C] {
	return ConfigKey[C]{&sectionDef[C]{name, o, state.CheckAlias[C]() != nil}}
}

// Name returns the name of the section, "" for the zero key.
func (k ConfigKey[C]) Name() string {
	if k.def == nil {
		return ""
	}
	return k.def.name
}

// Get returns the settings of the agent that pc is about. What it returns is the
// caller's: if C holds references, every call decodes a new one. Outside a run,
// and for a key that is not registered, it is the default.
func (k ConfigKey[C]) Get(pc *phase.Context) C {
	if pc != nil {
		v, _ := pc.Agent().Section(k.Name())
		if get, ok := v.(section[C]); ok {
			if out, err := get(); err == nil {
				return out
			}
		}
	}
	return k.defaults()
}

// From returns the settings in a spec that no engine has checked. The error is
// about this section only; it joins every fault of it.
func (k ConfigKey[C]) From(spec AgentSpec) (v C, err error) {
	f := newFaults(spec.source, spec.ID)
	get := k.decode(f, jsonpos.Path{"sections", k.Name()}, k.Name(), spec.Sections[k.Name()], true)
	if err := f.err(); err != nil {
		return v, err
	}
	return get.(section[C])()
}

func (k ConfigKey[C]) defaults() (v C) {
	if k.def != nil && k.def.Default != nil {
		v = k.def.Default()
	}
	return v
}

func (k ConfigKey[C]) decode(f *faults, at jsonpos.Path, plugin string, raw inference.JSON, check bool) any {
	if k.def == nil {
		f.Name(at, "the section's key was not made by NewConfigKey")
		return nil
	}
	doing := "the default: "
	// A goroutine of its own, because plugin code may also end the one it runs in.
	get, err := detached(context.Background(), nil, plugin, 0, func(context.Context) (section[C], error) {
		value, base := k.defaults(), inference.JSON("")
		if k.def.aliases && k.def.Default != nil {
			var err error
			if base, err = inference.ToJSON(value); err != nil {
				return nil, err
			}
		}
		doing = ""
		if fits, err := k.fits(f, at, plugin, raw); !fits || err != nil {
			return nil, err
		}
		get := k.reader(value, base, raw)
		value, err := get()
		if err == nil && check && k.def.Check != nil {
			err = k.def.Check(value)
		}
		if !k.def.aliases {
			get = func() (C, error) { return value, nil }
		}
		return get, err
	})
	if err != nil {
		text := err
		var bad *inference.JSONError
		if errors.As(err, &bad) {
			text = bad.Err // without its place in a text that the user never saw
		}
		f.Value(at, "%s%v", doing, text).Err = err
	}
	return get
}

// reader returns a function that decodes raw on top of the default, which is
// base if a C holds references and value if not.
func (k ConfigKey[C]) reader(value C, base, raw inference.JSON) section[C] {
	return func() (v C, err error) {
		if !k.def.aliases {
			v = value
		} else if base != "" {
			if err := json.Unmarshal([]byte(base), &v); err != nil {
				return v, fmt.Errorf("the default cannot be read back from JSON: %w", err)
			}
		}
		if raw != "" {
			err = raw.Decode(&v)
		}
		return v, err
	}
}

// fits reports what in raw does not fit a C, and whether all does.
func (k ConfigKey[C]) fits(f *faults, at jsonpos.Path, plugin string, raw inference.JSON) (bool, error) {
	if raw == "" {
		return true, nil
	}
	var inside jsonpos.Check // of positions in raw, which is not the spec's text
	inside.Tree(jsonpos.Parse([]byte(raw)))
	if faults := inside.Faults(); len(faults) > 0 {
		return false, errors.New(faults[0].Msg)
	}
	own := func(decode func() error) error { return guard(plugin, 0, decode) }
	return f.Fit(reflect.TypeFor[C](), inside.Root, at, jsonpos.Rules{Null: true, Call: own}), nil
}
