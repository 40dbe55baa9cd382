package stores

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrPlace is returned for a text that says no place of a store.
var ErrPlace = errors.New("cannot be used")

// Forms is how a place is written, for help texts and errors.
const Forms = "a folder, bolt:FOLDER, postgres://USER@HOST/DATABASE or nats://HOST:4222"

// kind is what keeps a store.
type kind string

const (
	folder   kind = "bolt"
	postgres kind = "postgres"
	stream   kind = "nats"
)

// settings are what a URL may say to this program, besides what it says to the client
// of the server. Those of Postgres are many, so others are passed on.
var settings = map[kind][]string{
	postgres: {"schema", "secrets"},
	stream:   {"stream", "replicas", "domain", "monitor", "sync", "creds", "secrets"},
}

// Place is where a store is.
type Place struct {
	kind     kind
	address  string // the folder, or what the client of the server takes
	settings url.Values
	name     string
}

// Parse reads the value of --store. A text without a scheme is a folder.
func Parse(text string) (Place, error) {
	fault := func(format string, args ...any) (Place, error) {
		return Place{}, fmt.Errorf("the store %s %w: %w", hide(text), ErrPlace, fmt.Errorf(format, args...))
	}
	scheme, rest, found := strings.Cut(text, ":")
	switch {
	case text == "":
		return fault("name %s", Forms)
	case found && scheme == "bolt":
		rest = strings.TrimPrefix(rest, "//")
		if rest == "" {
			return fault("write bolt:FOLDER")
		}
		return Place{kind: folder, address: rest}, nil
	case found && (scheme == "postgres" || scheme == "postgresql"):
		return remote(postgres, text, fault)
	case found && scheme == "nats":
		return remote(stream, text, fault)
	case found && strings.HasPrefix(rest, "//"):
		return fault("nothing is known of %s; name %s", scheme, Forms)
	}
	return Place{kind: folder, address: text}, nil
}

// remote reads a URL. It may name several hosts, which package net/url does not know.
func remote(k kind, text string, fault func(string, ...any) (Place, error)) (Place, error) {
	address, query, _ := strings.Cut(text, "?")
	_, hosts, found := strings.Cut(address, "://")
	if !found || hosts == "" && k == stream { // a query may name the host of a database
		return fault("write %s://HOST, as in %s", k, Forms)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return fault("the part after the question mark: %v", err)
	}
	p := Place{kind: k, settings: url.Values{}, name: hide(text)}
	for name, all := range values {
		if !slices.Contains(settings[k], name) {
			if k == stream {
				return fault("there is no setting %q; known: %s", name, strings.Join(settings[k], ", "))
			}
			continue
		}
		if len(all) > 1 && name != "monitor" {
			return fault("%s is there %d times", name, len(all))
		}
		p.settings[name] = all
		delete(values, name)
	}
	if k == stream {
		if n := p.settings.Get("replicas"); n != "" {
			if i, err := strconv.Atoi(n); err != nil || i < 1 || i > 5 {
				return fault("replicas=%s is not a number from 1 to 5", n)
			}
		}
		if s := p.settings.Get("sync"); !slices.Contains([]string{"", syncAssume, syncNone}, s) {
			return fault("sync=%s is not %s or %s", s, syncAssume, syncNone)
		}
	}
	if p.address = address; len(values) > 0 {
		p.address += "?" + values.Encode()
	}
	return p, nil
}

// The values of the setting sync.
const (
	syncAssume = "assume"
	syncNone   = "none"
)

// Shared reports whether several processes may use the store at once.
func (p Place) Shared() bool { return p.kind != folder }

// Folder returns the folder of a store that is not shared; "" for others.
func (p Place) Folder() string {
	if p.Shared() {
		return ""
	}
	return p.address
}

// Secrets returns the folder for secrets that the URL of a shared store names, which all
// processes have to see; "" for none.
func (p Place) Secrets() string { return p.settings.Get("secrets") }

// String returns what --store was given, without what is secret.
func (p Place) String() string {
	if p.Shared() {
		return p.name
	}
	return p.address
}

var (
	passwords  = regexp.MustCompile(`://([^/@:?]*):[^/@?]*@`)
	tokens     = regexp.MustCompile(`(nats://)[^/@:?\s]+@`)
	parameters = regexp.MustCompile(`([?&](?:ssl)?password=)[^&\s]*`)
)

// veiled is an error whose text may have the address with what is secret.
type veiled struct{ error }

func (v veiled) Error() string { return hide(v.error.Error()) }
func (v veiled) Unwrap() error { return v.error }

// hide leaves passwords and tokens out of a text.
func hide(text string) string {
	text = tokens.ReplaceAllString(text, "${1}xxxxx@")
	text = passwords.ReplaceAllString(text, "://${1}:xxxxx@")
	return parameters.ReplaceAllString(text, "${1}xxxxx")
}
