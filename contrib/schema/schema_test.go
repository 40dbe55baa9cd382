package schema_test

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/jsonschema"
	"github.com/ddd26017/fixpoint/contrib/schema"
	"github.com/ddd26017/fixpoint/inference"
)

type unit string

func (unit) JSONSchema() inference.JSON { return `{"type":"string","enum":["c","f"]}` }

type base struct {
	ID    string `json:"id" pattern:"^[a-z]+$"`
	Notes string // taken by the struct around it
}

type Page struct {
	Size uint8 `json:"size,omitzero"`
}

type tree struct {
	Name     string          `json:"name"`
	Children []tree          `json:"children,omitempty"`
	Parent   *tree           `json:"parent,omitempty"`
	ByName   map[string]tree `json:"by_name,omitempty" maxProperties:"3"`
}

type nest []nest

type pair[A any] struct {
	Left  A        `json:"left"`
	Right *pair[A] `json:"right"`
}

type everything struct {
	base
	*Page
	Notes   string
	Flag    bool                      `json:"flag"`
	Small   int8                      `json:"small"`
	Wide    int64                     `json:"wide,string"`
	Ratio   float64                   `json:"ratio" exclusiveMinimum:"0" exclusiveMaximum:"1" description:"a < b & c"`
	Step    float32                   `json:"step,omitempty" multipleOf:"0.5"`
	Count   uint                      `json:"count" default:"3"`
	When    time.Time                 `json:"when"`
	For     time.Duration             `json:"for" description:"How long."`
	Waits   []time.Duration           `json:"waits" minItems:"1" maxItems:"3" uniqueItems:"true" minimum:"0"`
	Raw     json.RawMessage           `json:"raw"`
	Args    inference.JSON            `json:"args"`
	Any     any                       `json:"any" description:"whatever"`
	Number  json.Number               `json:"number"`
	Big     *big.Int                  `json:"big"`
	Data    []byte                    `json:"data" maxLength:"100"`
	Three   [3]bool                   `json:"three"`
	Addr    netip.Addr                `json:"addr"`
	Tags    map[string][]string       `json:"tags" enum:"x,y"`
	ByAddr  map[netip.Addr]int        `json:"by_addr"`
	ByID    map[int8]*Page            `json:"by_id"`
	ByCount map[uint]string           `json:"by_count"`
	Unit    unit                      `json:"unit" description:"of temperature" default:"c"`
	Maybe   *unit                     `json:"maybe"`
	Level   *int                      `json:"level" enum:"1,2,3"`
	Email   *string                   `json:"email,omitempty" format:"email" minLength:"3" default:"a@b"`
	Tree    tree                      `json:"tree"`
	Nest    nest                      `json:"nest"`
	Pair    pair[string]              `json:"pair"`
	Link    url.URL                   `json:"link"`
	Inline  struct{ A, B []struct{} } `json:"inline"`
	Ignored chan int                  `json:"-"`
	_       func()
}

type recursive struct {
	Value int        `json:"value" minimum:"1" default:"7"`
	Next  *recursive `json:"next"`
}

type empty struct{}

// The text of a schema is the same every time, and reviewed.
func TestGolden(t *testing.T) {
	golden := func(name string, derive func() (inference.JSON, error)) {
		first, err := derive()
		require.NoError(t, err)
		for range 20 {
			again, err := derive()
			require.NoError(t, err)
			require.Equal(t, first, again)
		}
		var indented strings.Builder
		enc := json.NewEncoder(&indented)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		require.NoError(t, enc.Encode(json.RawMessage(first)))
		file := filepath.Join("testdata", name+".json")
		if os.Getenv("UPDATE_GOLDEN") != "" {
			require.NoError(t, os.WriteFile(file, []byte(indented.String()), 0o600))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), indented.String())
	}
	golden("everything", schema.For[everything])
	golden("recursive", schema.For[recursive])
	golden("map", schema.For[map[string]tree])
	golden("empty", schema.For[empty])
}

type badReader struct{}

func (*badReader) UnmarshalJSON([]byte) error { return nil }

type badWords struct{ badReader }

func (badWords) JSONSchema() inference.JSON { return "7" }

type loop *loop

type inner struct{ X int }

type doubleA struct{ N int }

type doubleB struct {
	M int `json:"N"`
}

// What cannot be a schema is said when a tool is made, with the field.
func TestConstructionErrors(t *testing.T) {
	refused := func(derive func() (inference.JSON, error), want string) {
		t.Helper()
		text, err := derive()
		require.Empty(t, text)
		require.EqualError(t, err, "schema: "+want)
	}
	const pkg = "schema_test."
	refused(schema.For[struct {
		A []struct{ B map[string]chan int }
	}],
		`struct { A []struct { B map[string]chan int } }.A[].B[]: a value of type chan int cannot be read from JSON; leave the field out with the tag json:"-"`)
	type bad struct {
		F func() `json:"f"`
	}
	refused(schema.For[bad], pkg+`bad.F: a value of type func() cannot be read from JSON; leave the field out with the tag json:"-"`)
	refused(schema.For[map[string]complex128], `map[string]complex128[]: a value of type complex128 cannot be read from JSON; leave the field out with the tag json:"-"`)
	refused(schema.For[struct{ E error }], `struct { E error }.E: a value of type error cannot be read from JSON; leave the field out with the tag json:"-"`)
	refused(schema.For[map[bool]int], `map[bool]int: a map with keys of type bool cannot be read from JSON`)
	refused(schema.For[struct{ R badReader }], `struct { R schema_test.badReader }.R: schema_test.badReader reads JSON in its own way; give it a method JSONSchema`)
	refused(schema.For[struct{ W badWords }], `struct { W schema_test.badWords }.W: the schema of *schema_test.badWords: json: cannot unmarshal number into Go value of type map[string]interface {}`)
	refused(schema.For[struct{ L loop }], `struct { L schema_test.loop }.L: a pointer to itself cannot be read from JSON`)
	refused(schema.For[int], `int is read from no object; arguments are a struct or a map`)
	refused(schema.For[[]string], `[]string is read from no object; arguments are a struct or a map`)
	refused(schema.For[any], `interface {} is read from no object; arguments are a struct or a map`)
	refused(schema.For[*inner], `*schema_test.inner: arguments are a struct or a map, not a pointer to one`)
	type hidden struct{ *inner }
	refused(schema.For[hidden], pkg+`hidden.inner: encoding/json cannot set an embedded pointer that is not exported; embed the struct itself`)
	type twice struct {
		doubleA
		doubleB
	}
	refused(schema.For[twice], pkg+`twice.M: another field is called "N" too; give one of them another json name`)
	type quoted struct {
		A int `json:"a→b"`
	}
	refused(schema.For[quoted], pkg+`quoted.A: encoding/json does not take "a→b" for a name`)
	for name, derive := range map[string]func() (inference.JSON, error){
		`the tag minimum says nothing about a string`: schema.For[struct {
			A string `minimum:"1"`
		}],
		`the tag minItems says nothing about a map[string]int`: schema.For[struct {
			A map[string]int `minItems:"1"`
		}],
		`the tag minimum: x is not JSON`: schema.For[struct {
			A int `minimum:"x"`
		}],
		`the tag minimum: "1" is no number`: schema.For[struct {
			A int `minimum:"\"1\""`
		}],
		`the tag minLength: strconv.ParseUint: parsing "-1": invalid syntax`: schema.For[struct {
			A string `minLength:"-1"`
		}],
		`the tag uniqueItems: strconv.ParseBool: parsing "x": invalid syntax`: schema.For[struct {
			A []int `uniqueItems:"x"`
		}],
		`the tag enum: a is not JSON`: schema.For[struct {
			A int `enum:"1,a"`
		}],
		`the tag enum is for texts, numbers and truth values, and lists and maps of them`: schema.For[struct {
			A struct{} `enum:"1"`
		}],
		`the tag default: x is not JSON`: schema.For[struct {
			A []int `default:"x"`
		}],
	} {
		_, err := derive()
		require.ErrorContains(t, err, ".A: "+name)
	}
	for name, derive := range map[string]func() (inference.JSON, error){
		`the tag enum: jsonschema: the value does not fit its schema: it is a number, not an integer`: schema.For[struct {
			A int `enum:"1.5"`
		}],
		`the tag enum: jsonschema: the value does not fit its schema: it is shorter than 2 characters`: schema.For[struct {
			A string `enum:"aa,b" minLength:"2"`
		}],
		`the tag default: jsonschema: the value does not fit its schema: it is not one of "a", "b"`: schema.For[struct {
			A string `enum:"a,b" default:"c"`
		}],
		`the tag default: jsonschema: the value does not fit its schema: it is more than 127`: schema.For[struct {
			A int8 `default:"128"`
		}],
		`the tag default: jsonschema: the value does not fit its schema: /next/value: is less than 1; /value: is missing`: schema.For[struct {
			A struct {
				Next  recursive `json:"next"`
				Value int       `json:"value"`
			} `default:"{\"next\":{\"value\":0,\"next\":null}}"`
		}],
	} {
		_, err := derive()
		require.ErrorContains(t, err, ".A: "+name)
	}
	_, err := schema.For[struct {
		A string `pattern:"("`
	}]()
	require.ErrorIs(t, err, jsonschema.ErrSchema)
	require.ErrorContains(t, err, "/properties/A/pattern")
	_, err = schema.For[struct {
		A string `minLength:"2" maxLength:"1" default:"ab"`
	}]()
	require.ErrorContains(t, err, "is longer than 1 character")
	_, err = schema.For[struct {
		A int    `description:"-"`
		B string `description:"-"`
	}]()
	require.NoError(t, err)
	_, err = schema.For[struct {
		A big.Int
		B [2000]unit
	}]()
	require.NoError(t, err)
}
