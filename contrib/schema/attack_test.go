package schema_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/schema"
	"github.com/ddd26017/fixpoint/inference"
)

type point struct{ X, Y int }

type leftPoint struct{ point }

type rightPoint struct{ point }

type shade uint8

func (s *shade) UnmarshalText(text []byte) error {
	if *s = shade(len(text)); *s > 3 {
		return errors.New("want 3 letters at most")
	}
	return nil
}

func (s shade) MarshalText() ([]byte, error) { return []byte(strings.Repeat("x", int(s))), nil }

type fixedWord struct{}

func (fixedWord) JSONSchema() inference.JSON { return `{"type":"string","const":"x"}` }

type referring struct{}

func (referring) JSONSchema() inference.JSON { return `{"type":"object","items":{"$ref":"#"}}` }

type Bäum struct {
	Next *Bäum `json:"next,omitempty" description:"and so on"`
}

type endless struct {
	Next *endless `json:"next" default:"{}"`
}

type options struct {
	Depth int      `json:"depth" default:"2"`
	Kinds []string `json:"kinds" default:"[\"a\"]"`
}

// What encoding/json does to a type, and nobody expects, is said when the tool is made.
func TestSurprisesAreErrors(t *testing.T) {
	for want, derive := range map[string]func() (inference.JSON, error){
		`.X: encoding/json drops it, since schema_test.point is embedded more than once; embed it in one place`: schema.For[struct {
			leftPoint
			rightPoint
		}],
		`.point: give it a name with a capital, or leave it out`: schema.For[struct {
			point `json:"point"`
		}],
		`.A: it would be a text that is written as JSON inside of a text`: schema.For[struct {
			A string `json:",string"`
		}],
		`.B: it would be a text that is written as JSON inside of a text`: schema.For[struct {
			B *shade `json:",string"`
		}],
		`.A: the tag default: jsonschema: the value does not fit its schema: it does not match`: schema.For[struct {
			A int64 `json:",string" default:"abc"`
		}],
		`.A: the tag default: inference: bad JSON at offset 3: json: cannot unmarshal number 300`: schema.For[struct {
			A int8 `json:",string" default:"300"`
		}],
		`want 3 letters at most`: schema.For[struct {
			A shade `default:"long"`
		}],
		`.A: the tag enum: inference: bad JSON`: schema.For[struct {
			A map[string][]*shade `enum:"x,long"`
		}],
		`.B: the tag default: inference: bad JSON at offset 22: parsing time`: schema.For[struct {
			B time.Time `default:"2030-06-30T23:59:60Z"`
		}],
		`cannot unmarshal number 3.0`: schema.For[struct {
			A int `default:"3.0"`
		}],
		`: the tag default: it never ends: filled in, it has itself in it again`: schema.For[endlessHolder],
		`.R: the schema of *schema_test.referring: it has a reference`:           schema.For[struct{ R referring }],
	} {
		text, err := derive()
		require.Empty(t, text, want)
		require.ErrorContains(t, err, want)
		require.True(t, strings.HasPrefix(err.Error(), "schema: "), err)
	}
	_, err := schema.For[struct {
		A int64 `json:",string" enum:"1,2" default:"2"`
		leftPoint
		X, Y int
	}]()
	require.NoError(t, err, "fields that the outer struct has are no surprise")
}

type endlessHolder struct{ First endless }

// The whole of an error tells a model what to write instead, and where.
func TestArgumentsUnderAttack(t *testing.T) {
	type quoted struct {
		I int64    `json:"i,string,omitempty"`
		S int8     `json:"s,string,omitempty"`
		U uint64   `json:"u,string,omitempty"`
		B bool     `json:"b,string,omitempty"`
		F *float32 `json:"f,string,omitempty"`
	}
	list := func(n int, item string) inference.JSON {
		return inference.JSON("[" + strings.Repeat(item+",", n-1) + item + "]")
	}
	for _, c := range []struct {
		in   any
		args inference.JSON
		want string // of the error; none if the arguments are read
	}{
		{quoted{}, `{"i":"-9007199254740993","s":"-128","u":"18446744073709551615","b":"false","f":"-1.5e-3"}`, ""},
		{quoted{}, `{"i":"hunter2","b":"1","f":"null"}`, `/b: does not match "^(true|false)$", found a string of 1 character; ` +
			`/f: does not match "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?$", found a string of 4 characters; ` +
			`/i: does not match "^(0|-?[1-9][0-9]*)$", found a string of 7 characters`},
		{quoted{}, `{"i":1}`, `/i: is a number, not a string, found 1`},
		{quoted{}, `{"s":"300","u":"18446744073709551616","f":"1e39"}`, `/s: want a whole number of 8 bits, got 300; ` +
			`/u: want a whole number of 0 or more and 64 bits, got 18446744073709551616; /f: want a number in the range of float32, got 1e39`},
		{quoted{}, `{"u":"-1"}`, `/u: does not match "^(0|[1-9][0-9]*)$", found a string of 2 characters`},

		{struct{ S []shade }{}, `{"S":["x","xxx"]}`, ""},
		{struct{ S []shade }{}, `{"S":["x","xxxx"]}`, `/S/1: want 3 letters at most`},
		{struct{ W *fixedWord }{}, `{"W":null}`, ""},

		{struct{ A any }{}, `{"A":[9007199254740992,{"id":9007199254740993},-1e300,3.14159265358979323846]}`,
			`/A/1/id: has more digits than are kept of it; write it as a string, found 9007199254740993`},
		{map[string]map[string]any{}, `{"a":{"b~/c":12345678901234567890}}`, `/a/b~0~1c: has more digits than are kept of it; write it as a string, found 12345678901234567890`},
		{struct{ R inference.JSON }{}, `{"R":{"id":12345678901234567890}}`, ""},

		{map[int8]int{}, `{"-128":1,"127":2}`, ""},
		{map[int8]int{}, `{"300":1}`, `/300: is no key: json: cannot unmarshal number 300 into Go value of type int8`},
		{map[int8]int{}, `{"-0":1,"01":2,"0x1":3}`, `/-0: is not known; /01: is not known; /0x1: is not known`},
		{map[netip.Addr]int{}, `{"::1":1,"0:0::1":2}`, `/0:0::1: is the key of another member too, written in another way; keep one`},
		{map[netip.Addr]int{}, `{"one":1}`, `/one: is no key: ParseAddr("one"): unable to parse IP`},
		{map[string]int{}, `{"\ud800":1,"\ud801":2}`, "field \"\uFFFD\" is there twice, again at 1:13; keep one"},

		{struct{ N int }{}, inference.JSON(`{"N":` + strings.Repeat("9", 1<<19) + `}`), `/N: has more than 4000 digits, found 99999`},
		{struct{ N big.Int }{}, inference.JSON(`{"N":` + strings.Repeat("9", 4000) + `}`), ""},
		{struct{ N big.Int }{}, `{"N":1.0}`, `/N: math/big: cannot unmarshal "1.0" into a *big.Int`},
		{struct{ A []string }{}, `{"A":` + list(100_001, "1") + `}`, `/A/99998: is the first of more than 100000 values`},
		{struct{ A []int }{}, `{"A":` + list(20_000, "1.0") + `}`, `/A/0: want a whole number of 64 bits, got 1.0`},
		{struct{ A any }{}, `{"A":` + inference.JSON(strings.Repeat("[", 100)+strings.Repeat("]", 100)) + `}`, `more than 64 levels deep`},
		{struct{ A any }{}, `{"A":` + inference.JSON(strings.Repeat("[", 400_000)+strings.Repeat("]", 400_000)) + `}`, `they are not JSON in UTF-8`},
		{struct{ A any }{}, "\xef\xbb\xbf{\"A\":1}", `they are not JSON in UTF-8`},
		{struct{ A any }{}, `{"A":1,"a":2}`, `/a: is not known`},
		{struct {
			A Bäum `json:"a"`
		}{}, `{"a":{"next":{"next":7}}}`, `/a/next/next: is a number, not one of null, object, found 7`},
	} {
		_, decode, err := schema.Decoder(reflect.TypeOf(c.in))
		require.NoError(t, err)
		_, err = decode(c.args)
		if c.want == "" {
			require.NoError(t, err, "%.80s", c.args)
			continue
		}
		require.ErrorContains(t, err, c.want, "%.80s", c.args)
		require.NotContains(t, err.Error(), "hunter2")
		require.Less(t, len(err.Error()), 3000)
	}
}

// What a default leaves out is filled in, too, if that has a default.
func TestDefaultsOfDefaults(t *testing.T) {
	type call struct {
		All  options            `json:"all" default:"{}"`
		Some *options           `json:"some" default:"{\"depth\":7}"`
		Many map[string]options `json:"many" default:"{\"x\":{}}"`
	}
	_, decode, err := schema.Decoder(reflect.TypeFor[call]())
	require.NoError(t, err)
	got, err := decode(`{}`)
	require.NoError(t, err)
	a := []string{"a"}
	require.Equal(t, &call{options{2, a}, &options{7, a}, map[string]options{"x": {2, a}}}, got)
}

// Gemini and OpenAI's strict mode take nothing beside a reference: there, schemas that are
// right by draft 2020-12 are refused.
func TestReferencesStandAlone(t *testing.T) {
	text, err := schema.For[struct {
		Tree Bäum `json:"tree" description:"All of it."`
	}]()
	require.NoError(t, err)
	require.Equal(t, inference.JSON(`{"$defs":{"B_um":{"additionalProperties":false,"properties":{"next":{"anyOf":[{"$ref":"#/$defs/B_umOrNull"}],`+
		`"description":"and so on"}},"type":"object"},"B_umOrNull":{"additionalProperties":false,"properties":{"next":{"anyOf":[{"$ref":"#/$defs/B_umOrNull"}],`+
		`"description":"and so on"}},"type":["object","null"]}},"additionalProperties":false,"properties":{"tree":{"anyOf":[{"$ref":"#/$defs/B_um"}],`+
		`"description":"All of it."}},"required":["tree"],"type":"object"}`), text)
}

type panicking struct{}

func (*panicking) UnmarshalText([]byte) error { panic("boom") }

// A type or a function that panics ends its call, and no more.
func TestPanicsEndTheCall(t *testing.T) {
	tool, err := schema.Tool(inference.ToolSpec{Name: "p"}, func(_ context.Context, in struct {
		A *panicking `json:"a"`
	}) (string, error) {
		panic(fmt.Sprint("in the function ", in.A))
	})
	require.NoError(t, err)
	for i, res := range play(t, tool, nil, `{"a":"x"}`, `{"a":null}`) {
		require.Equal(t, inference.OutcomeError, res.Outcome)
		require.Contains(t, res.Content, []string{"boom", "in the function <nil>"}[i])
	}
}

// A result that cannot be written is not told as a call that failed: a model would repeat that.
func TestResultsUnderAttack(t *testing.T) {
	cycle := map[string]any{}
	cycle["self"] = cycle
	for _, out := range []any{math.NaN(), math.Inf(1), cycle, make(chan int), []any{func() {}}, map[bool]int{true: 1}} {
		res := result(t, out, nil)
		require.Equal(t, inference.OutcomeError, res.Outcome)
		require.Contains(t, res.Content, "out was called and did its work, but its result is lost: ")
	}
	require.Equal(t, "null", result[*url.URL](t, nil, nil).Content, "whose String would look into nothing")
	require.Equal(t, "null", result[fmt.Stringer](t, (*time.Time)(nil), nil).Content)
	require.Equal(t, "null", result[any](t, nil, nil).Content)
	require.Equal(t, "https://h/p", result(t, &url.URL{Scheme: "https", Host: "h", Path: "/p"}, nil).Content)

	for _, refused := range []func() error{
		func() error { _, err := made[map[bool]int](); return err },
		func() error { _, err := made[struct{ M []map[[2]int]string }](); return err },
	} {
		require.ErrorContains(t, refused(), "cannot be written as JSON")
	}
	for _, fine := range []func() error{
		func() error { _, err := made[map[netip.Addr]map[int8]string](); return err },
		func() error { _, err := made[map[uint]any](); return err },
	} {
		require.NoError(t, fine())
	}
}

func made[Out any]() (any, error) {
	return schema.Tool(inference.ToolSpec{Name: "out"}, func(context.Context, empty) (out Out, err error) { return out, err })
}
