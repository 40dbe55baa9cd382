package tagged_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/tagged"
)

type move struct {
	X    int    `json:"x"`
	Note string `json:"note,omitempty"`
}

func Example() {
	line, _ := tagged.Marshal("moved", move{X: 1, Note: "a < b"})
	fmt.Println(string(line))
	name, object, _ := tagged.Split(line)
	var m move
	fmt.Println(name, tagged.Decode(object, &m), m.X)
	// Output:
	// {"type":"moved","x":1,"note":"a < b"}
	// moved <nil> 1
}

func TestSplit(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"a"}`:                    "a {}",
		" {\n\"type\" : \"a\" , \"x\":1}": `a {"x":1}`,
		``:                                " EOF",
		`null`:                            " found <nil> where { must be; want an object that starts with its type",
		`{"x":1,"type":"a"}`:              " found x where type must be; want an object that starts with its type",
		`{}`:                              " found } where type must be; want an object that starts with its type",
		`{"type":7}`:                      " the type is 7; it must be a string",
		`{"type":"a"`:                     "a neither a comma nor the end of the object behind the type",
		`{"type":"a",}`:                   "a a comma without a member behind it",
	} {
		name, object, err := tagged.Split([]byte(text))
		got := string(object)
		if err != nil {
			got = err.Error()
		}
		require.Equal(t, want, name+" "+got, text)
	}
}

func TestDecodeIsStrict(t *testing.T) {
	for text, want := range map[string]string{
		`{"x":1}`:         "",
		`{"x":1,"y":2}`:   `unknown field "y"`,
		`{"x":1}{}`:       "text after the object",
		`{"x":"1"}`:       "cannot unmarshal string",
		`{"x":1,`:         "unexpected EOF",
		`{"x":1}` + "\n ": "",
	} {
		var m move
		err := tagged.Decode([]byte(text), &m)
		if want == "" {
			require.NoError(t, err, text)
			require.Equal(t, move{X: 1}, m)
			continue
		}
		require.ErrorContains(t, err, want, text)
	}
}

func TestMarshalFails(t *testing.T) {
	_, err := tagged.Marshal("a", func() {})
	require.ErrorContains(t, err, "unsupported type")
}

// Whatever Split and Decode take is written as the same object again.
func FuzzRoundTrip(f *testing.F) {
	f.Add(`{"type":"a","x":3,"note":"<b>"}`)
	f.Add(`{"type":"a"}`)
	f.Fuzz(func(t *testing.T, text string) {
		name, object, err := tagged.Split([]byte(text))
		var m move
		if err != nil || tagged.Decode(object, &m) != nil || strings.ContainsFunc(name, func(r rune) bool { return r < 'a' || r > 'z' }) {
			return
		}
		line, err := tagged.Marshal(name, m)
		require.NoError(t, err)
		again, object, err := tagged.Split(line)
		require.NoError(t, err)
		require.Equal(t, name, again)
		var same move
		require.NoError(t, tagged.Decode(object, &same))
		require.Equal(t, m, same)
	})
}
