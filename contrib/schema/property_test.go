package schema_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/jsonschema"
	"github.com/ddd26017/fixpoint/contrib/schema"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

var scalars = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[string](), reflect.TypeFor[float32](), reflect.TypeFor[float64](),
	reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](), reflect.TypeFor[int64](),
	reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](), reflect.TypeFor[uint64](),
	reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](), reflect.TypeFor[[]byte](), reflect.TypeFor[json.RawMessage](),
	reflect.TypeFor[any](), reflect.TypeFor[netip.Addr](), reflect.TypeFor[unit](),
}

// randomType returns a type that can be read from JSON.
func randomType(r *rand.Rand, depth int) reflect.Type {
	if depth == 0 {
		return scalars[r.IntN(len(scalars))]
	}
	switch r.IntN(8) {
	case 0:
		return reflect.SliceOf(randomType(r, depth-1))
	case 1:
		return reflect.ArrayOf(r.IntN(3), randomType(r, depth-1))
	case 2:
		keys := []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[int16](), reflect.TypeFor[uint](), reflect.TypeFor[netip.Addr]()}
		return reflect.MapOf(keys[r.IntN(len(keys))], randomType(r, depth-1))
	case 3:
		to := randomType(r, depth-1)
		if to.Kind() == reflect.Pointer || to == reflect.TypeFor[any]() || to == reflect.TypeFor[json.RawMessage]() {
			return to // what is null of them would be read as no pointer
		}
		return reflect.PointerTo(to)
	case 4:
		return reflect.TypeFor[tree]()
	case 5, 6:
		return randomStruct(r, depth)
	}
	return randomType(r, 0)
}

func randomStruct(r *rand.Rand, depth int) reflect.Type {
	fields := make([]reflect.StructField, r.IntN(5))
	for i := range fields {
		tag := fmt.Sprintf(`json:"f%d`, i)
		tag += []string{"", ",omitempty"}[r.IntN(2)]
		fields[i] = reflect.StructField{
			Name: fmt.Sprintf("F%d", i), Type: randomType(r, depth-1),
			Tag: reflect.StructTag(tag + `"`),
		}
	}
	return reflect.StructOf(fields)
}

// fillRandom sets v to a value that a model could send.
func fillRandom(r *rand.Rand, v reflect.Value, depth int) {
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = time.Unix(r.Int64N(1<<33), r.Int64N(1e9)).UTC()
		return
	case *json.RawMessage:
		*p = json.RawMessage([]string{`{"a":[1,"x"]}`, `12345678901234567890.5`, `"Z"`, `null`, `[]`}[r.IntN(5)])
		return
	case *netip.Addr:
		*p = netip.AddrFrom4([4]byte{10, 0, byte(r.Uint32()), byte(r.Uint32())})
		return
	case *unit:
		*p = []unit{"c", "f"}[r.IntN(2)]
		return
	case *any:
		*p = []any{nil, true, "text", 1.5, []any{"x"}, map[string]any{"F": 1.0, "f": 2.0}}[r.IntN(6)]
		return
	case *[]byte:
		*p = make([]byte, r.IntN(4))
		return
	}
	switch k := v.Kind(); k {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.String:
		v.SetString([]string{"", "x", "\u00e9\u2028\x00\U0001F600", "<&>\"\\", strings.Repeat("long", 50)}[r.IntN(5)])
	case reflect.Float32:
		v.SetFloat(float64(float32(r.NormFloat64() * math.Pow(10, float64(r.IntN(60)-30)))))
	case reflect.Float64:
		v.SetFloat(r.NormFloat64() * math.Pow(10, float64(r.IntN(600)-300)))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fillRandom(r, v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fillRandom(r, key, depth+1)
			fillRandom(r, value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.Pointer:
		if r.IntN(2) == 0 && depth < 8 {
			v.Set(reflect.New(v.Type().Elem()))
			fillRandom(r, v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); v.Type() != reflect.TypeFor[tree]() || i == 0 || depth < 5 {
				fillRandom(r, f, depth+1)
			}
		}
	default:
		bits := r.Uint64() >> r.IntN(64)
		switch {
		case v.CanInt():
			v.SetInt(int64(bits) >> (64 - v.Type().Bits()))
		case v.CanUint():
			v.SetUint(bits >> (64 - v.Type().Bits()))
		}
	}
}

// strictly is what encoding/json and exact names ask for: the measure of engine.NewTool.
func strictly(args inference.JSON, t reflect.Type) error {
	if err := args.Decode(reflect.New(t).Interface()); err != nil {
		return err
	}
	return jsonpos.Exact(string(args), t)
}

// What encoding/json writes of a value of any type is let through, and becomes the same
// value again; made wrong in one place it is refused by the schema; made wrong anywhere it
// is refused at least where strict decoding refuses it.
func TestRandomStructs(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		typ := randomStruct(r, 1+r.IntN(4))
		text, decode, err := schema.Decoder(typ)
		require.NoError(t, err, typ)
		checker := jsonschema.New(jsonschema.Options{})
		for range 10 {
			value := reflect.New(typ)
			fillRandom(r, value.Elem(), 0)
			args, err := inference.ToJSON(value.Interface())
			require.NoError(t, err)
			again, err := decode(args)
			require.NoError(t, err, "%s %s", text, args)
			back, err := inference.ToJSON(again)
			require.NoError(t, err)
			require.Equal(t, args, back, text)

			if wrong, how := spoiled(r, typ, jsonpos.Parse([]byte(args))); wrong != "" {
				require.ErrorIs(t, checker.CheckSchema(text, wrong), jsonschema.ErrValue, "%s: %s %s", how, text, wrong)
				_, err := decode(wrong)
				var fault *schema.ArgumentError
				require.ErrorAs(t, err, &fault, how)
				require.NotEmpty(t, fault.Faults)
				require.Less(t, len(err.Error()), 4000)
			}
			scrambled := scramble(r, string(args))
			if strictly(scrambled, typ) != nil {
				_, err := decode(scrambled)
				require.Error(t, err, "%s %s", text, scrambled)
			}
		}
	}
}

// spoiled makes one place of a value wrong by its type, and says how.
func spoiled(r *rand.Rand, t reflect.Type, n *jsonpos.Node) (inference.JSON, string) {
	var ways []func() string
	collect(t, n, &ways)
	if len(ways) == 0 {
		return "", ""
	}
	how := ways[r.IntN(len(ways))]()
	return inference.JSON(n.JSON()), how
}

func collect(t reflect.Type, n *jsonpos.Node, ways *[]func() string) {
	add := func(way func() string) { *ways = append(*ways, way) }
	pointer := t.Kind() == reflect.Pointer
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[any]() || t == reflect.TypeFor[json.RawMessage]() || n.Kind == jsonpos.Null {
		return
	}
	add(func() string {
		kind := jsonpos.Object
		if n.Kind == jsonpos.Object {
			kind = jsonpos.List
		}
		*n = jsonpos.Node{Kind: kind}
		return "another kind for " + t.String()
	})
	if !pointer {
		add(func() string { *n = jsonpos.Node{Kind: jsonpos.Null}; return "null for " + t.String() })
	}
	switch {
	case n.Kind == jsonpos.Number && t.Kind() != reflect.Float32 && t.Kind() != reflect.Float64:
		add(func() string { n.Text = "0.5"; return "a fraction" })
		if t.Bits() < 64 {
			add(func() string { n.Text = "4294967296"; return "too many" })
		}
	case t.Kind() == reflect.Array:
		add(func() string { n.Items = append(n.Items, &jsonpos.Node{Kind: jsonpos.Null}); return "too long" })
		fallthrough
	case n.Kind == jsonpos.List:
		for _, item := range n.Items {
			collect(t.Elem(), item, ways)
		}
	case t.Kind() == reflect.Map:
		for _, m := range n.Members {
			collect(t.Elem(), m.Value, ways)
		}
		if t.Key().Kind() == reflect.Int16 && len(n.Members) > 0 {
			add(func() string { n.Members[0].Name = "0x"; return "a key that is no number" })
		}
	case n.Kind == jsonpos.Object && t.Kind() == reflect.Struct:
		add(func() string {
			n.Members = append(n.Members, jsonpos.Member{Name: "F0", Value: &jsonpos.Node{Kind: jsonpos.Null}})
			return "an unknown member"
		})
		for i := range t.NumField() {
			name, option, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			at := slices.IndexFunc(n.Members, func(m jsonpos.Member) bool { return m.Name == name })
			if at < 0 {
				continue
			}
			collect(t.Field(i).Type, n.Members[at].Value, ways)
			if option == "" {
				add(func() string { n.Members = slices.Delete(n.Members, at, at+1); return "without " + name })
			}
		}
	}
}

// scramble changes a text in one place, to one that may be JSON still.
func scramble(r *rand.Rand, text string) inference.JSON {
	pieces := []string{`"`, "{", "}", "[", "]", ",", ":", "null", "1", "-", ".5", "e9", "F", `{}`, `"f0":1,`, "\\", "\xff", " ", "99999999999"}
	from := r.IntN(len(text) + 1)
	to := min(len(text), from+r.IntN(4))
	return inference.JSON(text[:from] + pieces[r.IntN(len(pieces))] + text[to:])
}

// FuzzArguments checks that no arguments bring a tool down, that what it takes is what
// strict decoding takes, and that what is wrong is told in one short line.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{
		`{}`, ``, `null`, `[]`, `{"city":"x"}`, `{"city":"x","city":"y"}`, `{"City":"x"}`, `{"city":"x","nights":1.0}`, `{"city":7,"nights":1e400,"board":"\u0000"}`,
		`{"city":"x","at":"2030-01-01T00:00:60Z","data":"?","tree":{"name":"a","children":[{"name":"b"}]}}`, `{"city":"\ud800","a/b~c":{"x":[1,{"":2}]}}`,
		"{\"city\":\"\xff\"}", "\ufeff{}", `{"city":"a"} {}`, `{"city":"a","by":{"1":2,"01":3}}`,
	} {
		f.Add(s)
	}
	type arguments struct {
		booking
		At   time.Time       `json:"at,omitzero"`
		Data []byte          `json:"data,omitempty"`
		Tree *tree           `json:"tree,omitempty"`
		By   map[int]float32 `json:"by,omitempty"`
		Any  any             `json:"a/b~c,omitempty"`
	}
	_, decode, err := schema.Decoder(reflect.TypeFor[arguments]())
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		in, err := decode(inference.JSON(text))
		_, again := decode(inference.JSON(text))
		if err != nil {
			require.EqualError(t, again, err.Error())
			require.Less(t, len(err.Error()), 5000)
			require.NotContains(t, err.Error(), "\n")
			return
		}
		if text != "" {
			require.NoError(t, strictly(inference.JSON(text), reflect.TypeFor[arguments]()))
		}
		require.GreaterOrEqual(t, in.(*arguments).Nights, 1)
	})
}
