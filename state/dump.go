package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/internal/jsonarray"
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

// Delta returns the dump as what changed since an empty state, for Store.Apply.
func (d Dump) Delta() Delta {
	out := Delta{Revision: d.Revision, Entries: make([]DeltaEntry, len(d.Entries))}
	for i, e := range d.Entries {
		out.Entries[i].DumpEntry = e
	}
	return out
}

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
		if d.transient || !wanted(d.scope) || !holds(c) {
			continue
		}
		raw, err := guard(d.name, func() ([]byte, error) { return d.impl.encode(c) })
		if err != nil {
			return Dump{}, fmt.Errorf("state: cannot encode key %q: %w", d.name, err)
		}
		dump.Entries = append(dump.Entries, DumpEntry{d.name, d.scope, d.version, raw})
	}
	for _, e := range s.kept {
		if wanted(e.Scope) {
			e.Raw = bytes.Clone(e.Raw)
			dump.Entries = append(dump.Entries, e)
		}
	}
	slices.SortFunc(dump.Entries, byName)
	return dump, nil
}

func byName(a, b DumpEntry) int { return strings.Compare(a.Name, b.Name) }

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
		return Dump{}, &DecodeError{Offset: at, Err: err}
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	dump := Dump{Entries: []DumpEntry{}}
	names := map[string]bool{}
	entry := func() error {
		var e DumpEntry
		if err := dec.Decode(&e); err != nil {
			return err
		}
		err := e.check(names)
		dump.Entries = append(dump.Entries, e)
		return err
	}
	field := func(name string) (err error) {
		switch name {
		case "entries":
			return placed(jsonarray.Walk(dec, '[', entry))
		case "revision":
			if err = dec.Decode(&dump.Revision); dump.Revision > maxRevision {
				err = errRevision
			}
		default:
			err = fmt.Errorf("unknown field %q, want revision and entries", name)
		}
		return err
	}
	if err := placed(jsonarray.Members(dec, field)); err != nil {
		return Dump{}, err
	}
	slices.SortFunc(dump.Entries, byName)
	return dump, nil
}

// placed makes an error that is about a place a *DecodeError with its position.
func placed(at int64, err error) error {
	if err == nil {
		return nil
	}
	fault := &DecodeError{Offset: -1, Err: err}
	if errors.As(err, &fault); fault.Offset < 0 {
		fault.Offset = at
	}
	return fault
}

// maxRevision leaves room for the commits after an import.
const maxRevision = math.MaxInt64

var errRevision = fmt.Errorf("the revision is above %d", int64(maxRevision))

// check refuses an entry that cannot be imported with a *DecodeError, and
// takes the white space out of its value.
func (e *DumpEntry) check(names map[string]bool) (err error) {
	raw, err := compact(e.Raw)
	switch bad := invalidName(e.Name); {
	case bad != nil:
		err = bad
	case names[e.Name]:
		err = fmt.Errorf("%w: the entry stands twice", ErrDuplicateKey)
	case e.Scope > ScopeThread:
		err = fmt.Errorf("%v is not a scope", e.Scope)
	case e.Version < 0:
		err = errors.New("the version is negative")
	case len(e.Raw) == 0:
		err = errors.New("the value (raw) is missing")
	}
	if err != nil {
		return e.fault(err)
	}
	names[e.Name], e.Raw = true, raw
	return nil
}

// fault says of an entry that it cannot be read.
func (e *DumpEntry) fault(err error) error {
	return &DecodeError{Key: e.Name, Version: e.Version, Offset: -1, Err: err}
}

// checked returns the entries sorted and checked, in a slice of their own.
func (d Dump) checked() ([]DumpEntry, error) {
	if d.Revision > maxRevision {
		return nil, &DecodeError{Offset: -1, Err: errRevision}
	}
	entries, names := slices.Clone(d.Entries), make(map[string]bool, len(d.Entries))
	for i := range entries {
		if err := entries[i].check(names); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(entries, byName)
	return entries, nil
}
