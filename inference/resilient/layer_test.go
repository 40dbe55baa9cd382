package resilient_test

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"testing/quick"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/inference/resilient"
)

// wrappers are all ways to wrap one model, so that what holds for every wrapper is shown for each.
func wrappers(t testing.TB) map[string]func(inference.Model) inference.Model {
	all := map[string]func(inference.Model) inference.Model{
		"pool": func(m inference.Model) inference.Model {
			return pool(t, resilient.Pool{Members: []resilient.Member{{Name: "a", Model: m}}})
		},
		"recovering pool": func(m inference.Model) inference.Model {
			return pool(t, resilient.Pool{Members: []resilient.Member{{Name: "a", Model: m}}, Recovery: resilient.Recovery{How: resilient.Ask}})
		},
		"stack": func(m inference.Model) inference.Model {
			m = wrap(t, m, resilient.Timeout{Request: time.Hour}, resilient.Retry{}, &resilient.Breaker{})
			return wrap(t, pool(t, resilient.Pool{Members: []resilient.Member{{Name: "a", Model: m}}}), resilient.Continue{})
		},
	}
	for name, layer := range map[string]func() resilient.Layer{
		"timeout":  func() resilient.Layer { return resilient.Timeout{Request: time.Hour, Stall: time.Minute} },
		"retry":    func() resilient.Layer { return resilient.Retry{} },
		"repeat":   func() resilient.Layer { return resilient.Retry{Recovery: resilient.Recovery{How: resilient.Repeat}} },
		"prefill":  func() resilient.Layer { return resilient.Retry{Recovery: resilient.Recovery{How: resilient.Prefill}} },
		"breaker":  func() resilient.Layer { return &resilient.Breaker{} },
		"continue": func() resilient.Layer { return resilient.Continue{} },
	} {
		all[name] = func(m inference.Model) inference.Model { return wrap(t, m, layer()) }
	}
	return all
}

func TestWrappersStreamIfTheModelDoes(t *testing.T) {
	for name, around := range wrappers(t) {
		_, m := plain()
		_, streams := around(m).(inference.Streamer)
		require.False(t, streams, name)
		_, m = streaming()
		_, streams = around(m).(inference.Streamer)
		require.True(t, streams, name)
	}
}

// TestEngineStreamsThroughWrappers shows what the engine, which looks for a Streamer, makes of a wrapper.
func TestEngineStreamsThroughWrappers(t *testing.T) {
	for name, around := range wrappers(t) {
		for want, make := range map[int]func(...answer) (*fake, inference.Model){0: plain, 2: streaming} {
			_, m := make(says("one ", "two"))
			eng, err := engine.New(engine.Config{Model: around(m), Stream: true})
			require.NoError(t, err)
			var texts []string
			answer := ""
			for ev, err := range eng.Events(t.Context(), engine.AgentSpec{ID: "agent"}, engine.Prompt("count")) {
				require.NoError(t, err, name)
				switch ev := ev.(type) {
				case engine.InferenceChunk:
					texts = append(texts, ev.Text)
				case engine.InferenceFinished:
					answer = ev.Text
				}
			}
			require.Len(t, texts, want, name)
			require.Equal(t, "one two", answer, name)
		}
	}
}

// TestWrappersChangeNoAnswer gives models answers of all sorts.
func TestWrappersChangeNoAnswer(t *testing.T) {
	for name, around := range wrappers(t) {
		for way, ask := range ways {
			same := func(chunks []inference.Chunk, fails bool) bool {
				for i := range chunks {
					chunks[i].Usage = inference.Usage{OutputTokens: int64(i)}
					chunks[i].Stop = [...]inference.StopReason{"", "", inference.StopEnd, inference.StopFiltered}[i%4]
				}
				a := answer{chunks: chunks}
				if fails {
					a.err = failure(resilient.BadRequest)
				}
				_, m := streaming(a)
				want, wantErr := ask(t.Context(), m, request("x"))
				_, m = streaming(a)
				got, err := ask(t.Context(), around(m), request("x"))
				if fails {
					return errors.Is(err, resilient.BadRequest) && errors.Is(err, wantErr) && got.Usage == want.Usage
				}
				if want.Model == "" && got.Model == "m" {
					got.Model = "" // which a pool adds
				}
				return err == nil && reflect.DeepEqual(want, got)
			}
			require.NoError(t, quick.Check(same, &quick.Config{MaxCount: 50}), "%s, %s", name, way)
		}
	}
}

// TestBothWaysAgree draws what goes wrong before and with answers: a stream that is put together is what Generate
// returns, from the same requests.
func TestBothWaysAgree(t *testing.T) {
	agree := func(script []uint8, prefill bool) bool {
		var results [2]inference.Response
		var errs [2]error
		var requests [2][]inference.Request
		for i, way := range []string{"generate", "stream"} {
			var models []inference.Model
			var fakes []*fake
			for member := range 2 {
				var answers []answer
				for n, b := range script {
					if n%2 == member {
						a := [...]answer{breaks(broken), breaks(failure(resilient.Auth)), says("a", "b "), cut("c ", "d"), cut(" "), cut("e").and(calls("look", "{}"))}[b%6]
						answers = append(answers, a.paid(int64(b)+1))
					}
				}
				f, m := streaming(answers...)
				fakes = append(fakes, f)
				models = append(models, wrap(t, m, resilient.Timeout{Request: time.Hour}, resilient.Retry{
					Attempts: 3, Sleep: func(context.Context, time.Duration) error { return nil }}, &resilient.Breaker{Failures: 2}))
			}
			m := wrap(t, pool(t, resilient.Pool{Members: []resilient.Member{{Name: "a", Model: models[0]}, {Name: "b", Model: models[1]}}}),
				resilient.Continue{Prefill: prefill})
			results[i], errs[i] = ways[way](t.Context(), m, request("x"))
			requests[i] = append(fakes[0].requests, fakes[1].requests...)
		}
		return (errs[0] == nil) == (errs[1] == nil) && reflect.DeepEqual(requests[0], requests[1]) &&
			results[0].Usage == results[1].Usage && (errs[0] != nil || reflect.DeepEqual(results[0], results[1]))
	}
	require.NoError(t, quick.Check(agree, &quick.Config{MaxCount: 300}))
}

func TestWrappersEndTheStreamOfAConsumerThatLeaves(t *testing.T) {
	for name, around := range wrappers(t) {
		for most := range 4 {
			synctest.Test(t, func(t *testing.T) {
				f, m := streaming(says("a", "b", "c"))
				seen := 0
				for _, err := range around(m).(inference.Streamer).Stream(t.Context(), request("x")) {
					require.NoError(t, err, name)
					if seen++; seen > most {
						break
					}
				}
				require.Equal(t, most+1, seen, name)
				require.Zero(t, f.underWay(), "%s after %d", name, most)
				require.Equal(t, 1, f.asked(), name)
			})
		}
	}
}

func TestWrappersLetPanicsPass(t *testing.T) {
	for name, around := range wrappers(t) {
		for way, ask := range ways {
			f, m := streaming(answer{chunks: says("a").chunks, panics: "of the model"})
			require.PanicsWithValue(t, "of the model", func() { _, _ = ask(t.Context(), around(m), request("x")) }, "%s, %s", name, way)
			require.Zero(t, f.underWay(), name)

			f, m = streaming(answer{exits: true})
			returned := false
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = ask(t.Context(), around(m), request("x"))
				returned = true
			}()
			<-done
			require.False(t, returned, "%s, %s: runtime.Goexit", name, way)
			require.Zero(t, f.underWay(), name)
		}
		f, m := streaming(says("a", "b"))
		require.PanicsWithValue(t, "of the consumer", func() {
			for range around(m).(inference.Streamer).Stream(t.Context(), request("x")) {
				panic("of the consumer")
			}
		}, name)
		require.Zero(t, f.underWay(), name)
	}
}

func TestWrappersKeepTheRequestOfTheCaller(t *testing.T) {
	for name, around := range wrappers(t) {
		for way, ask := range ways {
			synctest.Test(t, func(t *testing.T) {
				f, m := streaming(breaks(failure(resilient.Transient)), says("fine"))
				_, err := ask(t.Context(), around(m), request("hello"))
				for _, r := range f.requests {
					require.Equal(t, []inference.Message{inference.User("hello")}, r.Messages, "%s, %s: %v", name, way, err)
				}
			})
		}
	}
}

func TestWrappersReturnWhenTheContextEnds(t *testing.T) {
	why := errors.New("the user went away")
	for name, around := range wrappers(t) {
		for way, ask := range ways {
			synctest.Test(t, func(t *testing.T) {
				f, m := streaming(answer{waits: time.Minute, chunks: says("a", "b").chunks})
				ctx, cancel := context.WithCancelCause(t.Context())
				start := time.Now()
				time.AfterFunc(10*time.Second, func() { cancel(why) })
				_, err := ask(ctx, around(m), request("x"))
				require.ErrorIs(t, err, context.Canceled, "%s, %s", name, way)
				require.Equal(t, 10*time.Second, time.Since(start), "%s, %s: at once", name, way)
				require.Equal(t, 1, f.asked(), "%s, %s: it is not asked again", name, way)
				require.Equal(t, resilient.Cancelled, resilient.ClassOf(err), "%s, %s", name, way)
				synctest.Wait()
				require.Zero(t, f.underWay(), name)
			})
		}
	}
}

func TestWrappersRefuseANilStream(t *testing.T) {
	for name, around := range wrappers(t) {
		_, err := collect(t.Context(), around(silent{}), request("x"))
		require.ErrorIs(t, err, inference.ErrBadResponse, name)
	}
}

func TestWrappersServeManyAtOnce(t *testing.T) {
	for name, around := range wrappers(t) {
		for way, ask := range ways {
			f, m := streaming()
			for range 64 {
				f.answers = append(f.answers, says("a", "b").paid(1))
			}
			before := runtime.NumGoroutine()
			wrapped := around(m)
			var all sync.WaitGroup
			for range 64 {
				all.Go(func() {
					resp, err := ask(t.Context(), wrapped, request("x"))
					if err != nil || resp.Message.Text != "ab" || resp.Usage.OutputTokens != 1 {
						t.Errorf("%s, %s: %v, %v", name, way, resp, err)
					}
				})
			}
			all.Wait()
			require.Zero(t, f.underWay(), name)
			require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 }, 10*time.Second, time.Millisecond, "%s, %s", name, way)
		}
	}
}

func TestWrapRefuses(t *testing.T) {
	_, m := plain()
	for want, layers := range map[string][]resilient.Layer{
		"layer 1 is nil":                                  {resilient.Retry{}, nil},
		"the *Breaker is nil":                             {(*resilient.Breaker)(nil)},
		"Breaker.Failures must be 0 (the default)":        {&resilient.Breaker{Failures: -1}},
		"Breaker.OpenFor must be":                         {&resilient.Breaker{OpenFor: -1}},
		"Breaker.Probes must be":                          {&resilient.Breaker{Probes: -1}},
		"Retry.Attempts must be":                          {resilient.Retry{Attempts: -1}},
		"Retry.Total must be":                             {resilient.Retry{Total: -1}},
		"Retry.Base must be from 0":                       {resilient.Retry{Base: 25 * time.Hour}},
		"Retry.Max must be":                               {resilient.Retry{Max: -1}},
		"Retry.MaxRetryAfter must be":                     {resilient.Retry{MaxRetryAfter: 25 * time.Hour}},
		"Retry.Classes must be of Transient":              {resilient.Retry{Classes: []resilient.Class{resilient.Unknown, resilient.BadRequest}}},
		"Retry.Recovery.How must be one of":               {resilient.Retry{Recovery: resilient.Recovery{How: 9}}},
		"Timeout.Request must be":                         {resilient.Timeout{Request: -1}},
		"Timeout.First must be":                           {resilient.Timeout{First: -1}},
		"Timeout.Stall must be":                           {resilient.Timeout{Stall: -1}},
		"Continue.Times must be":                          {resilient.Continue{Times: -1}},
		"Continue.Prompt must be empty with Prefill":      {resilient.Continue{Prefill: true, Prompt: "go on"}},
		"must be 0 (the default) or more\nresilient: Con": {&resilient.Breaker{Probes: -1}, resilient.Continue{Times: -1}},
	} {
		_, err := resilient.Wrap(m, layers...)
		require.ErrorContains(t, err, want)
	}
	_, err := resilient.Wrap(nil)
	require.ErrorContains(t, err, "no model")
}
