package enum

import (
	"fmt"
	"slices"
	"strings"
)

// Names are the texts of an enumeration by value. They must not change once in use, and
// are safe for concurrent use then.
type Names struct {
	Package string // that errors begin with
	Texts   []string
}

// Text returns the text of v, or "kind(v)" for a value that has none.
func (n Names) Text(kind string, v uint8) string {
	if int(v) < len(n.Texts) {
		return n.Texts[v]
	}
	return fmt.Sprintf("%s(%d)", kind, v)
}

// Marshal returns the text of v, and an error for a value that has none.
func (n Names) Marshal(kind string, v uint8) ([]byte, error) {
	text := []byte(n.Text(kind, v))
	return text, n.Parse(kind, text, new(uint8))
}

// Parse sets v to the value that has the text. With an error v stays as it was.
func (n Names) Parse(kind string, text []byte, v *uint8) error {
	i := slices.Index(n.Texts, string(text))
	if i < 0 {
		return fmt.Errorf("%s: unknown %s %q, want %s", n.Package, kind, text, strings.Join(n.Texts, " or "))
	}
	*v = uint8(i)
	return nil
}
