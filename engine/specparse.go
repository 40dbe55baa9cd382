package engine

import (
	"encoding/json"
	"reflect"

	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

// ParseSpec reads an agent spec from JSON. The name of the file is for errors
// only. It is strict: unknown and repeated fields, wrong types and values that
// no engine could accept are errors, each a *SpecError with its position, all
// joined; the spec is then zero. Whether plugins, tools, sections, models and
// agents exist is checked by the engine that the spec is given to.
func ParseSpec(file string, data []byte) (AgentSpec, error) {
	return oneSpec(file, jsonpos.Parse(data))
}

// ParseSpecs reads one agent spec or a list of them, as ParseSpec does. Two
// specs with one id are an error. One faulty spec fails them all.
func ParseSpecs(file string, data []byte) ([]AgentSpec, error) {
	return allSpecs(file, jsonpos.Parse(data))
}

// SpecFromNode reads an agent spec from a tree, as ParseSpec does from JSON. The
// tree is only read.
func SpecFromNode(file string, n *SpecNode) (AgentSpec, error) {
	return oneSpec(file, nodeTree{}.of(n, 0))
}

func oneSpec(file string, n *jsonpos.Node) (AgentSpec, error) {
	s, f := readSpec(file, n)
	if err := f.err(); err != nil {
		return AgentSpec{}, err
	}
	return s, nil
}

// SpecsFromNode reads one agent spec or a list of them from a tree, as
// ParseSpecs does from JSON. The tree is only read.
func SpecsFromNode(file string, n *SpecNode) ([]AgentSpec, error) {
	return allSpecs(file, nodeTree{}.of(n, -1)) // a list of specs is one level more
}

func allSpecs(file string, n *jsonpos.Node) ([]AgentSpec, error) {
	items := []*jsonpos.Node{n}
	if n != nil && n.Kind == jsonpos.List {
		items = n.Items
	}
	var specs []AgentSpec
	var all []*SpecError
	first := map[string]string{} // where an id was first seen, by id
	for _, item := range items {
		s, f := readSpec(file, item)
		id := f.Find(jsonpos.Path{"id"}).Value
		if earlier, twice := first[s.ID]; twice && s.ID != "" {
			f.Value(jsonpos.Path{"id"}, "a second agent with the id %q; the first is at %s%s", s.ID, file, earlier)
		} else {
			first[s.ID] = jsonpos.At(":", id.Line, id.Column)
		}
		specs = append(specs, s)
		all = append(all, f.errors()...)
	}
	if err := joined(all); err != nil {
		return nil, err
	}
	return specs, nil
}

// readSpec returns what could be read of a spec, and its faults.
func readSpec(file string, n *jsonpos.Node) (AgentSpec, *faults) {
	f := newFaults(specSource{file: file}, "")
	if !f.Tree(n) {
		return AgentSpec{}, f
	}
	s := AgentSpec{source: specSource{file, f.Root}}
	if f.Root.Kind == jsonpos.List {
		f.Value(nil, "want an object, got a list; read several specs with ParseSpecs")
		return s, f
	}
	f.Fit(reflect.TypeFor[specText](), f.Root, nil, jsonpos.Rules{})
	for _, m := range f.Root.Members {
		// What does not fit was reported; the rest is read in spite of it, so that
		// its faults are reported too.
		one := &jsonpos.Node{Kind: jsonpos.Object, Members: []jsonpos.Member{m}}
		_ = json.Unmarshal([]byte(one.JSON()), (*specText)(&s))
	}
	for i, c := range s.StopConditions {
		at := jsonpos.Path{"stop_conditions", i}
		if given, ok := f.Root.Find(at); ok {
			for _, m := range given.Value.Members {
				f.foreign(c.Type, m.Name, at)
			}
		}
	}
	f.name(s.ID)
	s.rules(f)
	return s, f
}
