package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Dump is exported state: plain data, sorted by name, the same bytes for the
// same state.
type Dump struct {
	// Revision is that of the exported snapshot.
	Revision uint64 `json:"revision"`
	// Entries are the values, one per key.
	Entries []DumpEntry `json:"entries"`
}

// DumpEntry is the value of one key.
type DumpEntry struct {
	Name    string          `json:"name"`
	Scope   Scope           `json:"scope"`
	Version int             `json:"version"`
	Raw     json.RawMessage `json:"raw"`
}

// keptEntries are imported entries of unknown keys, sorted. Immutable.
type keptEntries struct{ list []DumpEntry }

// Export returns the values of the given scopes, of all without an argument:
// those that were written or imported, but not those of Transient keys.
// Entries of unknown keys that an import kept are included. The error names
// the key whose codec failed.
func (s *Snapshot) Export(scopes ...Scope) (Dump, error) {
	dump := Dump{Revision: s.Revision(), Entries: []DumpEntry{}}
	if s == nil {
		return dump, nil
	}
	wanted := func(scope Scope) bool { return len(scopes) == 0 || slices.Contains(scopes, scope) }
	for _, d := range s.schema.byName {
		c := s.cell(d)
		if d.hidden || !wanted(d.scope) || c == nil || !d.impl.holds(c) {
			continue
		}
		var raw []byte
		err := guard(func() (err error) {
			raw, err = d.impl.encode(c)
			return err
		})
		if err != nil {
			return Dump{}, fmt.Errorf("state: cannot encode key %q: %w", d.name, err)
		}
		dump.Entries = append(dump.Entries, DumpEntry{d.name, d.scope, d.version, raw})
	}
	if s.kept != nil {
		for _, e := range s.kept.list {
			if wanted(e.Scope) {
				e.Raw = bytes.Clone(e.Raw)
				dump.Entries = append(dump.Entries, e)
			}
		}
		slices.SortFunc(dump.Entries, byName)
	}
	return dump, nil
}

func byName(a, b DumpEntry) int { return strings.Compare(a.Name, b.Name) }

// guard turns a panic into an error.
func guard(user func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("user code panicked: %v", v)
		}
	}()
	return user()
}

// DecodeDump reads the JSON form of a Dump. It is strict: unknown or repeated
// fields, nameless or repeated entries, unknown scopes and trailing data are
// refused with a *DecodeError that gives the position.
func DecodeDump(data []byte) (Dump, error) {
	// A look at the whole first, since a Decoder that gives out tokens counts
	// the bytes before a syntax error wrongly.
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		at := int64(-1)
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			at = syntax.Offset
		}
		return Dump{}, fail(at, err)
	}
	r := dumpReader{json.NewDecoder(bytes.NewReader(data))}
	r.dec.DisallowUnknownFields()
	dump, err := r.dump()
	if err != nil {
		return Dump{}, err
	}
	slices.SortFunc(dump.Entries, byName)
	return dump, nil
}

// dumpReader walks a dump token by token, to know the position of each entry.
type dumpReader struct{ dec *json.Decoder }

func (r dumpReader) dump() (Dump, error) {
	dump := Dump{Entries: []DumpEntry{}}
	if err := r.open('{'); err != nil {
		return dump, err
	}
	fields := map[any]bool{}
	for r.dec.More() {
		at := r.dec.InputOffset()
		name, err := r.dec.Token()
		if err != nil {
			return dump, fail(at, err)
		}
		if fields[name] {
			return dump, fail(at, fmt.Errorf("field %q stands twice", name))
		}
		fields[name] = true
		switch name {
		case "revision":
			if err := r.dec.Decode(&dump.Revision); err != nil {
				return dump, fail(at, err)
			}
			if dump.Revision > maxRevision {
				return dump, fail(at, errRevision)
			}
		case "entries":
			if dump.Entries, err = r.entries(); err != nil {
				return dump, err
			}
		default:
			return dump, fail(at, fmt.Errorf("unknown field %q, want revision and entries", name))
		}
	}
	return dump, nil
}

func (r dumpReader) entries() ([]DumpEntry, error) {
	entries := []DumpEntry{}
	if err := r.open('['); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for r.dec.More() {
		at := r.dec.InputOffset()
		var e DumpEntry
		if err := r.dec.Decode(&e); err != nil {
			return nil, fail(at, err)
		}
		if err := e.check(names); err != nil {
			return nil, &DecodeError{Key: e.Name, Version: e.Version, Offset: at, Err: err}
		}
		entries = append(entries, e)
	}
	_, err := r.dec.Token()
	return entries, err
}

func (r dumpReader) open(want json.Delim) error {
	at := r.dec.InputOffset()
	switch t, err := r.dec.Token(); {
	case err != nil:
		return fail(at, err)
	case t != want:
		return fail(at, fmt.Errorf("want %v, have %v", want, t))
	}
	return nil
}

func fail(at int64, err error) error { return &DecodeError{Offset: at, Err: err} }

// maxRevision leaves room for the commits after an import.
const maxRevision = math.MaxInt64

var errRevision = fmt.Errorf("the revision is above %d", int64(maxRevision))

// check refuses an entry that cannot be imported, and takes the white space
// out of its value.
func (e *DumpEntry) check(names map[string]bool) error {
	if err := invalidName(e.Name); err != nil {
		return err
	}
	switch {
	case names[e.Name]:
		return fmt.Errorf("%w: the entry stands twice", ErrDuplicateKey)
	case e.Scope > ScopeThread:
		return fmt.Errorf("%v is not a scope", e.Scope)
	case e.Version < 0:
		return errors.New("the version is negative")
	case len(e.Raw) == 0:
		return errors.New("the value (raw) is missing")
	}
	names[e.Name] = true
	raw, err := compact(e.Raw)
	e.Raw = raw
	return err
}

// normalized returns the entries sorted and checked, in a slice of their own.
func (d Dump) normalized() ([]DumpEntry, error) {
	if d.Revision > maxRevision {
		return nil, &DecodeError{Offset: -1, Err: errRevision}
	}
	entries := slices.Clone(d.Entries)
	names := make(map[string]bool, len(entries))
	for i := range entries {
		e := &entries[i]
		if err := e.check(names); err != nil {
			return nil, &DecodeError{Key: e.Name, Version: e.Version, Offset: -1, Err: err}
		}
	}
	slices.SortFunc(entries, byName)
	return entries, nil
}
