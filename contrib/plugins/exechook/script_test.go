package exechook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/plugins/exechook"
)

func TestWords(t *testing.T) {
	env := map[string]string{"D": "/p q", "HOME": "/h"}
	for line, want := range map[string][]string{
		`python3 "$D/x.py" --a`: {"python3", "/p q/x.py", "--a"},
		`'a b'c ${D} ~/x; rm y`: {"a bc", "/p q", "/h/x"},
		`a && b`:                {"a"},
		``:                      nil,
		`a $(b)`:                nil,
		"a `b`":                 nil,
		`a "x`:                  nil,
		`a 'x`:                  nil,
		`a \b`:                  nil,
		`"$(x)"`:                nil,
	} {
		require.Equal(t, want, exechook.Words(line, env), line)
	}
}

// FuzzWords feeds the splitter of command lines anything: of plain words it gives just
// these, and it never makes up an operator.
func FuzzWords(f *testing.F) {
	for _, seed := range []string{`a 'b c' "$D"`, `a\ b`, `"`, `$`, `${D`, `~/x;y`, "a\nb"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := exechook.Words(line, map[string]string{"D": "d"})
		if !strings.ContainsFunc(line, func(r rune) bool {
			return strings.ContainsRune("\t\n\r\v\f\u0085\u00a0'\"\\`$*?[#~;&|<>()", r) || r > 127
		}) {
			require.Equal(t, len(strings.Fields(line)), len(words))
			require.Equal(t, strings.Fields(line), append([]string{}, words...))
		}
		if !strings.ContainsAny(line, `'"`) {
			require.NotContains(t, strings.Join(words, ""), ";")
		}
	})
}
