package trace_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/effects"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/state"
)

// chance makes events at random.
type chance struct {
	*rand.Rand
	t      *testing.T
	odd    bool // values that are rare, or wrong, among the others
	states []*state.Snapshot
	writes []state.Update
}

func pick[T any](c *chance, usual []T, odd ...T) T {
	if c.odd && c.IntN(4) == 0 {
		usual = odd
	}
	return usual[c.IntN(len(usual))]
}

func (c *chance) text() string {
	return pick(c, []string{"", "plain", "step.1/step_end/0", "two words", "ünï¢ode 🎈", "a \"quoted\" \\ back\n\ttab\r\b\f"},
		"<&>", "\u2028 line \u2029", "\x00\x1f\x7f", "bad \xff utf\xe2\x80", `\u0041`, "{", " \n[1]", `{"token":"t0ps3cret"}`, "\t[{\"a\":{\"API_KEY\":\"xyz\"}}]",
		"ghp_"+strings.Repeat("a", 36), "password=hunter22x", "Bearer abcdefghijklmnopqrstuv", "hunter22", strings.Repeat("é", 300), strings.Repeat("long ", 20), `{"a":"`+"{\\\"secret\\\":5}"+`"}`)
}

func (c *chance) json() inference.JSON {
	return pick(c, []inference.JSON{"", "{}", "null", `{"a":[1,2.50,"x"],"b":{"c":null}}`, `"text"`, "12345678901234567890", "false", `{ "a" : [ 1 ] }`},
		"{not json <b>", `{"h":"<b>&"}`, `{"password":"x","n":"\u0074"}`, "[\"\u2028\"]", `{"my-Token":{"deep":[]}}`, `"hunter22"`, `["ghp_`+inference.JSON(strings.Repeat("a", 36))+`"]`, "[12345678]", "")
}

// events returns one of each event with every field set at random.
func (c *chance) events() (all []engine.Event) {
	for _, typ := range eventTypes() {
		v := reflect.New(typ).Elem()
		c.fill(v)
		all = append(all, v.Interface().(engine.Event))
	}
	return all
}

var eventTypes = sync.OnceValue(func() (all []reflect.Type) {
	for _, name := range engine.EventTypes() {
		zero, err := engine.UnmarshalEvent(fmt.Appendf(nil, `{"type":%q}`, name))
		if err != nil {
			panic(err)
		}
		all = append(all, reflect.TypeOf(zero))
	}
	return all
})

func (c *chance) fill(v reflect.Value) {
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = pick(c, []time.Time{{}, time.Unix(c.Int64N(4e9), c.Int64N(1e9)).UTC(), time.Unix(c.Int64N(4e9), 0).In(time.FixedZone("x", 3600*c.IntN(12)+60))},
			time.Date(20_000, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, 0).In(time.FixedZone("far", 30*3600)))
		return
	case *phase.Phase:
		*at = pick(c, []phase.Phase{0, phase.StepStart, phase.RunEnd}, 99, phase.ToolGate)
		return
	case *gate.Kind:
		*at = pick(c, []gate.Kind{gate.KindAbstain, gate.KindBlock}, 99, gate.KindAsk)
		return
	case *effects.ID:
		*at = pick(c, []effects.ID{{}, {Run: "run/with/slashes", Revision: c.Uint64(), Index: c.IntN(9)}}, effects.ID{Index: -1}, effects.ID{Run: c.text()})
		return
	case *json.RawMessage:
		*at = pick(c, []json.RawMessage{json.RawMessage(`{"a":[1,2.50,"x"]}`)}, nil, json.RawMessage("{"), json.RawMessage(`{ "token" : "x" }`))
		return
	case *state.Scope:
		*at = state.Scope(c.IntN(2))
		return
	case *inference.JSON:
		*at = c.json()
		return
	case **state.Snapshot:
		if len(c.states) > 0 && (!c.odd || c.IntN(4) > 0) {
			*at = c.states[c.IntN(len(c.states))]
		}
		return
	case *state.Update:
		if len(c.writes) > 0 && c.IntN(5) > 0 {
			*at = c.writes[c.IntN(len(c.writes))]
		}
		return
	case *[]inference.Part, *[]engine.TicketAnswer:
		if !c.odd || c.IntN(4) > 0 {
			return
		}
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(c.text())
	case reflect.Bool:
		v.SetBool(c.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(pick(c, []int64{0, 1, int64(c.IntN(1e6))}, c.Int64(), -c.Int64()))
	case reflect.Uint64:
		v.SetUint(c.Uint64())
	case reflect.Slice:
		n := c.IntN(4)
		if n == 3 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			c.fill(v.Index(i))
		}
	case reflect.Pointer:
		if c.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			c.fill(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				c.fill(v.Field(i))
			}
		}
	}
}

func random[T any](c *chance) (v T) {
	c.fill(reflect.ValueOf(&v).Elem())
	return v
}

// commit makes states with values of all sorts, and the updates that they come from.
func (c *chance) commit() {
	custom := state.Codec[int]{
		Encode: func(v int) ([]byte, error) { return fmt.Appendf(nil, "{ \"secret\" : [ %d, \"<&>\" ] }", v), nil },
		Decode: func([]byte) (int, error) { return 0, nil },
	}
	number, own, text := state.NewCell("number", state.Options[int]{}), state.NewCell("own", state.Options[int]{Codec: custom}), state.NewCell("text", state.Options[string]{})
	flag, count, list := state.NewCell("flag", state.Options[bool]{}), state.NewCounter("count", state.Options[int64]{}), state.NewLog("list", state.Options[any]{Shared: true})
	table, set, some := state.NewTable[string]("table", state.Options[engine.CallState]{Shared: true}), state.NewSet("set", state.Options[string]{}), state.NewCell("some", state.Options[any]{Shared: true})
	messages, usage := state.NewLog("messages", state.Options[inference.Message]{Clone: inference.Message.Clone}), state.NewCell("usage", state.Options[inference.Usage]{})
	store, err := state.NewStore(state.Config{Keys: []state.AnyKey{number, own, text, flag, count, list, table, set, some, messages, usage, phase.RunLifecycle}})
	require.NoError(c.t, err)
	c.states = append(c.states, store.Snapshot())
	for range 4 {
		now := []state.Update{
			number.With(c.IntN(99)), own.With(c.IntN(99)), text.With(c.text()), flag.With(c.IntN(2) == 0), count.With(int64(c.IntN(99))),
			list.Append(c.text(), map[string]any{c.text(): c.text()}), table.Put(c.text(), random[engine.CallState](c)), set.Add(c.text()), set.Remove(c.text()),
			messages.Append(random[inference.Message](c), random[inference.Message](c)), usage.With(random[inference.Usage](c)), table.Delete(c.text()), text.Reset(),
			some.With(pick[any](c, []any{nil, 1.5, []string{c.text()}}, func() {}, map[string]string{"authorization": "x"}, math.NaN(), math.Inf(-1), math.MaxFloat64, uint64(math.MaxUint64),
				json.Number("1e400"), json.RawMessage("{"), json.RawMessage(nil), map[string]any(nil), map[string]any{}, []byte(nil), []string{}, &c.odd, [2]any{})),
			phase.RunLifecycle.With(phase.LifecycleUpdate{Step: c.IntN(9), Detail: c.text()}),
		}
		c.writes = append(c.writes, now...)
		c.Shuffle(len(now), func(i, j int) { now[i], now[j] = now[j], now[i] })
		for _, u := range now[:1+c.IntN(4)] {
			if u.Key() == state.AnyKey(phase.RunLifecycle) {
				continue
			}
			if _, err := store.Commit(state.Batch{Owner: "x", Updates: []state.Update{u}}); err != nil {
				continue // a value that cannot be is no value
			}
		}
		c.states = append(c.states, store.Snapshot())
	}
}

// The lines are those that engine.MarshalEvent and a walk by the rules make of detailed
// events, whatever the event, and those of a step's usual ones are made in the short way.
func TestEncoderIsDetailed(t *testing.T) {
	stories := make([][]engine.Event, 18)
	for i := range stories {
		c := &chance{Rand: rand.New(rand.NewPCG(uint64(i), 2)), t: t, odd: i%3 > 0}
		c.commit()
		for range 3 {
			stories[i] = append(stories[i], c.events()...)
		}
	}
	for name, rules := range map[string]trace.Rules{
		"default": {}, "bare": {Bare: true}, "members": {Bare: true, Members: []string{"content", "a", "status", "text"}}, "keys": {Keys: []string{"t*", "own"}},
		"short": {MaxValue: 60, MaxElement: 30, MaxEvent: 600}, "chunks": {Chunks: true}, "secrets": {Secrets: []string{"hunter22", "12345678"}},
		"texts": {Texts: []*regexp.Regexp{regexp.MustCompile("plain")}},
	} {
		t.Run(name, func(t *testing.T) {
			known, clear := map[string]int{}, 0
			for i, events := range stories {
				trace.Encoded(rules, events, func(e engine.Event, quick, slow []byte, err error, ok, alone bool) {
					require.NoError(t, err)
					if !bytes.Equal(slow, quick) {
						require.Equal(t, string(slow), string(quick))
					}
					if ok && i%3 == 0 {
						known[e.Type()]++
					}
					if alone {
						clear++
					}
				})
			}
			require.Len(t, known, 16, "%v", known)
			require.Greater(t, known["committed"], 5)
			if len(rules.Secrets)+len(rules.Texts)+rules.MaxElement > 0 {
				require.Zero(t, clear) // there is something to look for in each, or each is too long to be sure
			} else {
				require.Greater(t, clear, 30)
			}
		})
	}
}
