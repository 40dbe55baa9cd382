package jsonschema_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/jsonschema"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
)

var _ engine.SchemaChecker = (*jsonschema.Checker)(nil)

func check(schema, value inference.JSON) error {
	return jsonschema.New(jsonschema.Options{}).CheckSchema(schema, value)
}

// What is wrong is told with its place, by the schema's terms.
func TestFaults(t *testing.T) {
	const says = "jsonschema: the value does not fit its schema: "
	for _, c := range []struct {
		schema, value inference.JSON
		want          string
	}{
		{`true`, `[1, "x"]`, ""},
		{`{}`, ``, ""},
		{`{"type":"null"}`, ``, ""},
		{`{"type":"string"}`, `"x"`, ""},
		{`false`, `1`, "it is not allowed"},
		{`{"type":"string"}`, `1`, "it is a number, not a string"},
		{`{"type":["integer","null"]}`, `"x"`, "it is a string, not one of null, integer"},
		{`{"enum":["once","always"]}`, `"hunter2"`, `it is not one of "once", "always"`},
		{`{"const":{"a":1}}`, `"hunter2"`, `it is not {"a":1}`},
		{`{"pattern":"^[a-z]+$"}`, `"hunter2"`, `it does not match "^[a-z]+$"`},
		{`{"minLength":9}`, `"hunter2"`, "it is shorter than 9 characters"},
		{`{"maxLength":1}`, `"hunter2"`, "it is longer than 1 character"},
		{`{"format":"email"}`, `"hunter2"`, `it is not of the format "email"`},
		{`{"minimum":5}`, `4.5`, "it is less than 5"},
		{`{"exclusiveMinimum":5}`, `5`, "it is not more than 5"},
		{`{"maximum":0.5}`, `1`, "it is more than 0.5"},
		{`{"exclusiveMaximum":1}`, `1`, "it is not less than 1"},
		{`{"multipleOf":2}`, `3`, "it is not a multiple of 2"},
		{`{"minItems":1}`, `[]`, "it has fewer than 1 item"},
		{`{"maxItems":1}`, `[1,2]`, "it has more than 1 item"},
		{`{"uniqueItems":true}`, `[1,1]`, "it has an item twice"},
		{`{"contains":{"const":1}}`, `[2]`, "it has no item that fits"},
		{`{"contains":{"const":1},"minContains":2}`, `[1]`, "it has fewer than 2 items that fit"},
		{`{"contains":{"const":1},"maxContains":1}`, `[1,1]`, "it has more than 1 item that fit"},
		{`{"minProperties":1}`, `{}`, "it has fewer than 1 member"},
		{`{"maxProperties":1}`, `{"a":1,"b":2}`, "it has more than 1 member"},
		{`{"not":{}}`, `1`, "it is what it must not be"},
		{`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `1`, "it fits none of the alternatives"},
		{`{"oneOf":[{"type":"string"},{"type":"null"}]}`, `1`, "it fits none of the alternatives"},
		{`{"oneOf":[{"minimum":1},{"minimum":2}]}`, `3`, "it fits more than one of the alternatives"},
		{`{"properties":{"a":{"items":{"type":"integer"}}}}`, `{"a":[1,"hunter2"]}`, "/a/1: is a string, not an integer"},
		{`{"properties":{"a/b~c":{"type":"integer"}}}`, `{"a/b~c":"hunter2"}`, "/a~1b~0c: is a string, not an integer"},
		{`{"required":["x","y"]}`, `{}`, "/x: is missing; /y: is missing"},
		{`{"additionalProperties":false}`, `{"x":"hunter2"}`, "/x: is not known"},
		{`{"propertyNames":{"maxLength":1}}`, `{"xy":1}`, "/xy: has a name that does not fit"},
		{`{"dependentRequired":{"x":["y"]}}`, `{"x":1}`, `/y: is missing, and needed beside "x"`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"x":["y"]}}`, `{"x":1}`, `/y: is missing, and needed beside "x"`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{}],"additionalItems":false}`, `[1,2]`, "it has more items than are known"},
		{`{"$defs":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/n"}}}`, `{"a":true}`, "/a: is a boolean, not an integer"},
		{`{"allOf":[{"type":"string"},{"enum":[2]}]}`, `1`, "it is a number, not a string; it is not one of 2"},
		{`{"items":{"type":"string"}}`, `[1,2,3,4,5]`, "/0: is a number, not a string; /1: is a number, not a string; /2: is a number, not a string; and 2 more"},
		{`{"$ref":"#"}`, `1`, "it cannot be checked: the schema refers to itself without end"},
		{`{}`, `{"a":`, "it is not JSON"},
		{`{}`, `1 2`, "it is not JSON"},
		{`{"additionalProperties":false}`, inference.JSON(`{"` + strings.Repeat("x", 500) + `":1}`), "/" + strings.Repeat("x", 118) + "…: is not known"},
		{`{"additionalProperties":false}`, `{"a\u001b[2J\nb":1}`, "/a\uFFFD[2J\uFFFDb: is not known"},
	} {
		err := check(c.schema, c.value)
		if c.want == "" {
			require.NoError(t, err, "%s %s", c.schema, c.value)
			continue
		}
		require.EqualError(t, err, says+c.want, "%s %s", c.schema, c.value)
		require.ErrorIs(t, err, jsonschema.ErrValue)
		require.NotErrorIs(t, err, jsonschema.ErrSchema)
		require.NotContains(t, err.Error(), "hunter2")
		var e *jsonschema.ValueError
		require.ErrorAs(t, err, &e)
		require.NotEmpty(t, e.Faults)
	}
}

// A schema that is at fault is told apart, whatever the value.
func TestBadSchemas(t *testing.T) {
	for schema, says := range map[inference.JSON]string{
		``:                                      "neither an object nor",
		`null`:                                  "neither an object nor",
		`[]`:                                    "neither an object nor",
		`{`:                                     "it is not JSON",
		`{} {}`:                                 "it is not JSON",
		`{"type":"strnig"}`:                     "/type: ",
		`{"properties":{"a":{"minLength":-1}}}`: "/properties/a/minLength: is less than 0",
		`{"required":"x"}`:                      "/required: is a string, not an array",
		`{"pattern":"("}`:                       "/pattern: ",
		`{"$ref":"#/$defs/none"}`:               "",
		`{"$ref":"#none"}`:                      "",
		`{"$schema":"ftp://x/y"}`:               "it refers to ftp://x/y, which is outside",
		`{"$id":"a","$defs":{"b":{"$id":"a"}}}`: "",
		inference.JSON(`{"const":"` + strings.Repeat("x", 70_000) + `"}`):                      "the limit is 65536",
		inference.JSON(strings.Repeat(`{"not":`, 100) + "{}" + strings.Repeat("}", 100)):       "levels deep",
		inference.JSON(`{"anyOf":[true` + strings.Repeat(`,{"type":"null"}`, 2500) + `]}`):     "parts; the limit is 2000",
		inference.JSON(strings.Repeat(`{"x":[`, 6000) + "1" + strings.Repeat("]}", 6000)):      "not JSON",
		inference.JSON(`{"minimum":` + strings.Repeat("9", 100) + `,"type":"\u001b\u001b\n"}`): "/type: ",
	} {
		for _, value := range []inference.JSON{`1`, `not json`} {
			err := check(schema, value)
			require.ErrorIs(t, err, jsonschema.ErrSchema, schema)
			require.NotErrorIs(t, err, jsonschema.ErrValue)
			require.ErrorContains(t, err, says, schema)
			require.NotContains(t, err.Error(), "schema.invalid")
			require.NotContains(t, err.Error(), "\n")
			require.Less(t, len(err.Error()), 400)
			var e *jsonschema.SchemaError
			require.ErrorAs(t, err, &e)
		}
	}
}

// Each draft has its own rules.
func TestDrafts(t *testing.T) {
	for draft, c := range map[string]struct{ schema, fits, not inference.JSON }{
		"https://json-schema.org/draft/2020-12/schema": {`"prefixItems":[{"type":"string"}]`, `["x"]`, `[1]`},
		"https://json-schema.org/draft/2019-09/schema": {`"items":[{"type":"string"}],"additionalItems":false`, `["x"]`, `["x",1]`},
		"http://json-schema.org/draft-07/schema#":      {`"if":{"type":"string"},"then":{"minLength":2}`, `"xy"`, `"x"`},
		"http://json-schema.org/draft-06/schema#":      {`"exclusiveMinimum":1`, `2`, `1`},
		"http://json-schema.org/draft-04/schema#":      {`"minimum":1,"exclusiveMinimum":true`, `2`, `1`},
	} {
		schema := inference.JSON(`{"$schema":"` + draft + `",` + string(c.schema) + `}`)
		require.NoError(t, check(schema, c.fits), draft)
		require.ErrorIs(t, check(schema, c.not), jsonschema.ErrValue, draft)
		require.NoError(t, check(inference.JSON(`{"$ref":"`+draft+`"}`), `{"type":"string"}`), "a draft may be referred to")
		require.Error(t, check(inference.JSON(`{"$ref":"`+draft+`"}`), `{"type":7}`))
	}
}

// Nothing outside of a schema is read, whatever it is called.
func TestNothingOutsideIsRead(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "s.json")
	require.NoError(t, os.WriteFile(file, []byte("true"), 0o600))
	t.Chdir(filepath.Dir(file))
	for _, ref := range []string{server.URL + "/s", "file://" + filepath.ToSlash(file), "s.json", "./s.json", "//other/s", "urn:x:y"} {
		for _, schema := range []string{`{"$ref":%q}`, `{"properties":{"a":{"$ref":%q}}}`, `{"$schema":%q}`, `{"$dynamicRef":%q}`, `{"$id":"http://a/b/","$ref":%q}`} {
			if ref[0] == 's' && strings.Contains(schema, "$schema") {
				continue // has no base to be relative to
			}
			err := check(inference.JSON(fmt.Sprintf(schema, ref)), `{}`)
			require.ErrorIs(t, err, jsonschema.ErrSchema, schema+ref)
		}
	}
	require.Zero(t, asked.Load())
	require.ErrorContains(t, check(`{"$ref":"https://example.com/s"}`, `1`),
		"it refers to https://example.com/s, which is outside: only references into the schema itself are followed")
}

// Input that would exhaust the stack, the memory or the time is turned away.
func TestBounds(t *testing.T) {
	deep := inference.JSON(strings.Repeat("[", 100) + strings.Repeat("]", 100))
	require.ErrorContains(t, check(`{}`, deep), "more than 64 levels deep")
	require.ErrorIs(t, check(`{}`, inference.JSON(strings.Repeat("[", 1<<19)+strings.Repeat("]", 1<<19))), jsonschema.ErrValue)
	require.ErrorContains(t, check(`{}`, inference.JSON(`"`+strings.Repeat("x", 2<<20)+`"`)), "it has more than 1048576 bytes")
	require.Error(t, check(`{"minimum":1}`, `1e99999999999`))
	require.Error(t, check(`{"multipleOf":1e-99999999999}`, `1`))

	// As long a chain of references as is let through, on each level of as deep a value.
	var chain strings.Builder
	chain.WriteString(`{"$ref":"#/$defs/0","$defs":{`)
	const links = 600
	for i := range links {
		fmt.Fprintf(&chain, `"%d":{"$ref":"#/$defs/%d"},`, i, i+1)
	}
	fmt.Fprintf(&chain, `"%d":{"items":{"$ref":"#"}}}}`, links)
	value := inference.JSON(strings.Repeat("[", 60) + strings.Repeat("]", 60))
	require.NoError(t, jsonschema.New(jsonschema.Options{Timeout: time.Minute}).CheckSchema(inference.JSON(chain.String()), value))
}

// Numbers that would have to be calculated with at great length are refused at once, in
// values and schemas.
func TestNumbers(t *testing.T) {
	digits := strings.Repeat("7", 4000)
	for _, c := range [][3]string{
		{`{"type":"integer"}`, `1e1000000000`, "it has an exponent beyond 400"},
		{`{"minimum":3}`, `-1E-1000000000`, "it has an exponent beyond 400"},
		{`true`, `[1,{"a/b":[1e99999999999999999999]}]`, "/1/a~1b/0: has an exponent beyond 400"},
		{`{"items":{"multipleOf":3}}`, `[` + strings.Repeat(`1e999999,`, 50000) + `1]`, "/0: has an exponent beyond 400"},
		{`{"multipleOf":3}`, strings.Repeat("7", 1_000_000), "it has more than 4000 digits"},
		{`{"multipleOf":0.3}`, "0." + strings.Repeat("7", 1_000_000), "it has more than 4000 digits"},
		{`{"maximum":1e1000000000}`, `1`, "the schema is at fault: /maximum: has an exponent beyond 400"},
		{`{"anyOf":[{"multipleOf":1e-999999}]}`, `1`, "the schema is at fault: /anyOf/0/multipleOf: has an exponent beyond 400"},
		{`{"const":` + digits + `7}`, `1`, "the schema is at fault: /const: has more than 4000 digits"},
	} {
		began := time.Now()
		err := check(inference.JSON(c[0]), inference.JSON(c[1]))
		require.ErrorContains(t, err, c[2])
		require.Less(t, time.Since(began), 2*time.Second, c[2]) // it takes some milliseconds
	}
	for _, fine := range []string{`1e400`, `-1E-400`, `0.5e+308`, "-" + digits, "1"} {
		require.NoError(t, check(`{"type":"number","maximum":1e400}`, inference.JSON(fine)), fine)
	}
}

// explosive needs two checks for each check, n times over.
func explosive(n int) inference.JSON {
	var s strings.Builder
	s.WriteString(`{"$ref":"#/$defs/0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&s, `"%d":{"allOf":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&s, `"%d":{"type":"string"}}}`, n)
	return inference.JSON(s.String())
}

// A check that takes too long is given up on, and does not stand in the way of others.
func TestTimeout(t *testing.T) {
	c := jsonschema.New(jsonschema.Options{Timeout: 20 * time.Millisecond})
	// It ends some seconds later by itself.
	require.ErrorIs(t, c.CheckSchema(explosive(20), `"x"`), jsonschema.ErrTimeout)
	require.Eventually(t, func() bool { return c.CheckSchema(`{"type":"string"}`, `"x"`) == nil }, 30*time.Second, time.Millisecond)
}

// One checker serves many at once, with more schemas than it keeps.
func TestConcurrentUse(t *testing.T) {
	for _, size := range []int{-1, 1, 4, 1000} {
		c := jsonschema.New(jsonschema.Options{Cache: size, Timeout: time.Minute})
		var wg sync.WaitGroup
		errs := make(chan error, 8)
		for range 8 {
			wg.Go(func() {
				for n := range 40 {
					schema := inference.JSON(fmt.Sprintf(`{"$defs":{"n":{"minimum":%d}},"items":{"$ref":"#/$defs/n"}}`, n%10))
					low := c.CheckSchema(schema, inference.JSON(fmt.Sprintf(`[%d]`, n%10-1)))
					if err := c.CheckSchema(schema, inference.JSON(fmt.Sprintf(`[%d]`, n%10))); err != nil || !errors.Is(low, jsonschema.ErrValue) {
						errs <- fmt.Errorf("%w and %w", err, low)
						return
					}
				}
			})
		}
		wg.Wait()
		close(errs)
		require.NoError(t, <-errs)
	}
}

// FuzzCheckSchema checks that no schema and no value brings the program down, and that
// an answer is one of the four, always the same, in a short line, without the value.
func FuzzCheckSchema(f *testing.F) {
	for _, s := range [][2]string{
		{`{"type":"string"}`, `1`}, {`{"enum":[1,"x"]}`, `"y"`}, {`{"$ref":"#"}`, `1`}, {`{"pattern":"(a+)+$"}`, `"aaaa!"`}, {`true`, ``},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","id":"x","properties":{"a":{"minimum":1}}}`, `{"a":1e400}`},
		{`{"$dynamicRef":"#x","$dynamicAnchor":"x","unevaluatedProperties":false}`, `{"a":[{"b":null}]}`},
		{`{"format":"date-time"}`, `"2026-13-45T99:99:99Z"`}, {`{"multipleOf":0.01,"uniqueItems":true}`, `[1,1.0,1e0]`},
		{`{"propertyNames":{"format":"regex"},"minContains":2,"contains":{}}`, `{"(":1}`},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, schema, value string) {
		marked := value
		if len(value) > 1 && value[0] == '"' {
			marked = `"sentinel-7f3a` + value[1:]
		}
		c := jsonschema.New(jsonschema.Options{Timeout: time.Minute})
		first := c.CheckSchema(inference.JSON(schema), inference.JSON(marked))
		again := c.CheckSchema(inference.JSON(schema), inference.JSON(marked))
		if first == nil {
			require.NoError(t, again)
			return
		}
		require.EqualError(t, again, first.Error())
		require.True(t, errors.Is(first, jsonschema.ErrValue) != errors.Is(first, jsonschema.ErrSchema), first)
		require.Less(t, len([]rune(first.Error())), 1200)
		require.NotContains(t, first.Error(), "\n")
		if !strings.Contains(schema, "sentinel") {
			require.NotContains(t, first.Error(), "sentinel")
		}
	})
}
