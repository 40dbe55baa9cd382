package models

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

// Script is what the ids of scripted models begin with, before a colon.
const Script = "script"

// Forms says what a model's id may be.
func Forms() string {
	forms := ""
	for _, name := range Names() {
		forms += name + ":NAME, "
	}
	return forms + "or " + Script + ":FILE"
}

// Wanted reports whether a spec has one of the sections, or perhaps meant to.
func Wanted(specs ...engine.AgentSpec) bool {
	known := []string{ServiceSection.Name(), Section.Name()}
	return slices.ContainsFunc(specs, func(spec engine.AgentSpec) bool {
		for name := range spec.Sections {
			if jsonpos.Nearest(name, known) != "" {
				return true
			}
		}
		return false
	})
}

// Plugin returns the plugin that brings the sections. It does nothing else.
func Plugin() engine.Plugin {
	return engine.NewPlugin("models", func(r *engine.Registrar) error {
		r.Section(ServiceSection)
		r.Section(Section)
		return nil
	})
}

// Source is what models are made from.
type Source struct {
	// Env looks a variable up.
	Env func(name string) string
	// Script reads a scripted model.
	Script func(file string) (inference.Model, error)
	// Tell is told of retries and the like. It may be called by many goroutines at once.
	Tell func(label, text string)
	// Look makes models that cannot be asked, and needs no key.
	Look bool
}

// Fault makes an error about a field of a spec.
type Fault func(spec int, field, format string, args ...any) error

// Make returns the models of the specs, by id. The error joins all faults.
func (s Source) Make(specs []engine.AgentSpec, fault Fault) (map[string]inference.Model, error) {
	services, settings, err := read(specs, fault)
	if err != nil {
		return nil, err
	}
	made := map[string]inference.Model{}
	var errs []error
	for i, spec := range specs {
		if _, done := made[spec.ModelID]; done {
			continue
		}
		m, err := s.guarded(spec.ModelID, services, settings)
		if err != nil {
			errs = append(errs, fault(i, "model_id", "%w", err))
		}
		made[spec.ModelID] = m // nil, so that a fault is told once
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return made, nil
}

// read returns what the sections say, the services by name and the settings by model.
func read(specs []engine.AgentSpec, fault Fault) (Services, map[string]Resilience, error) {
	services, settings := Services{}, map[string]Resilience{}
	var errs []error
	for i, spec := range specs {
		described, err := ServiceSection.From(spec)
		errs = append(errs, err)
		for _, name := range slices.Sorted(maps.Keys(described)) {
			if other, ok := services[name]; ok && !reflect.DeepEqual(other, described[name]) {
				errs = append(errs, fault(i, "sections", "agents say different things of the provider %q; give one of them another name", name))
			}
			services[name] = described[name]
		}
		if _, ok := spec.Sections[Section.Name()]; !ok {
			continue
		}
		r, err := Section.From(spec)
		errs = append(errs, err)
		if other, ok := settings[spec.ModelID]; ok && !reflect.DeepEqual(other, r) {
			errs = append(errs, fault(i, "sections", "agents say different things of the resilience of %q; leave the section out of all but one of them", spec.ModelID))
		}
		settings[spec.ModelID] = r
	}
	return services, settings, errors.Join(errs...)
}

// guarded returns the model of an id, with what its settings put around it.
func (s Source) guarded(id string, services Services, settings map[string]Resilience) (inference.Model, error) {
	m, err := s.bare(id, services)
	if err != nil {
		return nil, err
	}
	r, set := settings[id]
	if !set {
		if scripted(id) {
			return m, nil
		}
		r = Default()
	}
	others := map[string]inference.Model{}
	for i, other := range r.Fallback {
		if other == id {
			return nil, fmt.Errorf("fallback[%d] of its resilience is the model itself", i)
		}
		if others[other], err = s.bare(other, services); err != nil {
			return nil, fmt.Errorf("fallback[%d] of its resilience: %w", i, err)
		}
	}
	tell := s.Tell
	if tell == nil {
		tell = func(string, string) {}
	}
	return r.wrap(id, m, others, tell)
}

func scripted(id string) bool { return strings.HasPrefix(id, Script+":") }

// bare returns the model of an id.
func (s Source) bare(id string, services Services) (inference.Model, error) {
	name, model, ok := strings.Cut(id, ":")
	switch {
	case id == "":
		return nil, errors.New("name a model: " + Forms())
	case !ok || name == "" || model == "":
		return nil, fmt.Errorf("no model %q; a model is named %s", id, Forms())
	case name == Script:
		return s.Script(model)
	}
	service, described := services[name]
	p, known := service.protocol(name)
	if !known {
		all := append(append(Names(), Script), slices.Sorted(maps.Keys(services))...)
		return nil, fmt.Errorf("no provider %q; %s; the section providers can describe another", name, hint(name, all))
	}
	if s.Look {
		return inference.ModelFunc(func(context.Context, inference.Request) (inference.Response, error) {
			return inference.Response{}, errors.New("the model was made to be looked at")
		}), nil
	}
	c, err := service.connect(name, s.Env)
	if err != nil {
		return nil, err
	}
	m, err := p.make(c)
	if err != nil {
		if described {
			err = fmt.Errorf("%w (see the section providers)", err)
		}
		return nil, err
	}
	return rename(id, m), nil
}

// rename has a model asked by its name at the service instead of its id.
func rename(id string, m inference.Model) inference.Model {
	r := renamed{m, id}
	if s, ok := m.(inference.Streamer); ok {
		return renamedStreamer{r, s}
	}
	return r
}

type renamed struct {
	model inference.Model
	id    string
}

// known takes the provider off the name of a model, which plugins may have changed for
// another one of the same provider.
func (m renamed) known(r inference.Request) inference.Request {
	provider, name, _ := strings.Cut(m.id, ":")
	if r.Model == "" {
		r.Model = name
	}
	r.Model = strings.TrimPrefix(r.Model, provider+":")
	return r
}

func (m renamed) Generate(ctx context.Context, r inference.Request) (inference.Response, error) {
	return m.model.Generate(ctx, m.known(r))
}

type renamedStreamer struct {
	renamed
	streamer inference.Streamer
}

func (m renamedStreamer) Stream(ctx context.Context, r inference.Request) iter.Seq2[inference.Chunk, error] {
	return m.streamer.Stream(ctx, m.known(r))
}
