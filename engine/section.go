package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/ddd26017/fixpoint/inference"
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
	decode(f *faults, at *specPath, plugin string, raw inference.JSON, check bool) any
}

type sectionDef[C any] struct {
	name    string
	options ConfigOptions[C]
	aliases bool // a C holds references, so every reader gets its own
}

// section is the decoded section in the engine's own form.
type section[C any] struct {
	value     C              // when C holds no references
	base, raw inference.JSON // otherwise: the default, if there is one, and the section
	aliases   bool
}

// NewConfigKey declares a section. The name is unique per engine.
func NewConfigKey[C any](name string, o ConfigOptions[C]) ConfigKey[C] {
	return ConfigKey[C]{&sectionDef[C]{name: name, options: o, aliases: state.CheckAlias[C]() != nil}}
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
		if s, ok := v.(*section[C]); ok {
			out, err := s.get()
			if err == nil {
				return out
			}
		}
	}
	return k.defaults()
}

// From returns the settings in a spec that no engine has checked. The error is
// about this section only; it joins every fault of it.
func (k ConfigKey[C]) From(spec AgentSpec) (C, error) {
	f := &faults{source: spec.source, agent: spec.ID}
	at := (*specPath)(nil).field("sections").field(k.Name())
	v := k.decode(f, at, k.Name(), spec.Sections[k.Name()], true)
	if err := f.err(); err != nil {
		var zero C
		return zero, err
	}
	return v.(*section[C]).get()
}

func (k ConfigKey[C]) defaults() (v C) {
	if k.def != nil && k.def.options.Default != nil {
		v = k.def.options.Default()
	}
	return v
}

func (k ConfigKey[C]) decode(f *faults, at *specPath, plugin string, raw inference.JSON, check bool) any {
	if k.def == nil {
		f.name(at, "the section's key was not made by NewConfigKey")
		return nil
	}
	s := &section[C]{raw: raw, aliases: k.def.aliases}
	try := func(what string, fn func() error) bool {
		// A goroutine of its own, because plugin code may also end the one it runs in.
		_, err := detached(context.Background(), plugin, 0, func(context.Context) (struct{}, error) { return struct{}{}, fn() })
		if err != nil {
			f.value(at, "%s%v", what, cause(err)).Err = err
		}
		return err == nil
	}
	before := len(f.list)
	ok := try("the default: ", func() (err error) {
		if s.value = k.defaults(); s.aliases && k.def.options.Default != nil {
			s.base, err = inference.ToJSON(s.value)
		}
		return err
	})
	if ok && raw != "" {
		ok = try("", func() error { return k.shape(f, at, plugin, raw) })
	}
	if !ok || len(f.list) > before {
		return nil
	}
	ok = try("", func() (err error) {
		if s.aliases {
			s.value, err = s.get()
		} else if raw != "" {
			err = raw.Decode(&s.value)
		}
		if err != nil || !check || k.def.options.Check == nil {
			return err
		}
		return k.def.options.Check(s.value)
	})
	if !ok {
		return nil
	}
	if s.aliases {
		var zero C
		s.value = zero // Check may have kept what it refers to
	}
	return s
}

// shape reports what in raw does not fit a C.
func (k ConfigKey[C]) shape(f *faults, at *specPath, plugin string, raw inference.JSON) error {
	n, syntax := parseNode("", []byte(raw))
	if syntax != nil {
		return errors.New(syntax.Msg)
	}
	inside := &faults{} // of positions in raw, which is not the spec's text
	c := treeCopy{faults: inside}
	n = c.copy(n, at, 0)
	for _, e := range inside.list {
		f.at(position{}, at, "%s", e.Msg)
	}
	if len(inside.list) == 0 {
		shapeCheck{f, plugin}.fit(reflect.TypeFor[C](), n, at)
	}
	return nil
}

func (s *section[C]) get() (C, error) {
	if !s.aliases {
		return s.value, nil
	}
	var v C
	if s.base != "" {
		if err := json.Unmarshal([]byte(s.base), &v); err != nil {
			return v, fmt.Errorf("the default cannot be read back from JSON: %w", err)
		}
	}
	if s.raw == "" {
		return v, nil
	}
	return v, s.raw.Decode(&v)
}

// cause drops what an error says of its place in a text that the user never saw.
func cause(err error) error {
	var bad *inference.JSONError
	if errors.As(err, &bad) {
		return bad.Err
	}
	return err
}
