package engine_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
)

// gbTransform is a plugin with one request transform.
func gbTransform(name string, fn func(ctx context.Context, r inference.Request) (inference.Request, error), options ...engine.TransformOption) engine.Plugin {
	return engine.NewPlugin(name, func(r *engine.Registrar) error {
		r.Transform(inference.TransformFunc(fn), options...)
		return nil
	})
}

// Capability A7. Transforms change system prompt, messages, tools and parameters,
// each on the last one's result, in registration order; only those of active
// plugins run.
func TestTransformsRunInOrder(t *testing.T) {
	add := func(name string) engine.Plugin {
		return gbTransform(name, func(_ context.Context, r inference.Request) (inference.Request, error) {
			r.System += name
			r.Messages = append(r.Messages, inference.User(name))
			r.Tools = append(r.Tools, inference.ToolSpec{Name: name})
			r.Params.Temperature = inference.Some(r.Params.Temperature.Or(0) + 1)
			r.Model += name
			return r, nil
		})
	}
	for _, c := range []struct {
		filter []string
		want   string
	}{{nil, "abc"}, {[]string{"c", "a"}, "ac"}} {
		model := gbScript()
		w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{add("a"), add("b"), add("c")}})
		w.spec.ActiveHookFilter = c.filter
		w.say("hi")
		req := model.sent()[0]
		require.Equal(t, c.want, req.System)
		require.Equal(t, c.want, req.Model)
		require.Equal(t, inference.Some(float64(len(c.want))), req.Params.Temperature)
		require.Len(t, req.Messages, 1+len(c.want))
		require.Len(t, req.Tools, len(c.want))
		changed := gbOf[engine.RequestTransformed](w.events)
		require.Len(t, changed, len(c.want))
		for i, e := range changed {
			require.Equal(t, c.want[i:i+1], e.Plugin)
			require.True(t, e.System && e.Messages && e.Tools && e.Params)
		}
		require.Equal(t, []inference.Message{inference.User("hi"), inference.Assistant("done")}, w.messages(), "history is untouched")
	}
}

// Capability M3. Capability H3. A change of the request is for this call only: the
// next call starts from the thread's history again, whatever a transform does to
// the slices it was given or keeps a hold of.
func TestTransformsNeverReachHistory(t *testing.T) {
	var kept []inference.Request
	model := gbScript(gbAsk(gbCall("c1", "t", `{"a":1}`)))
	w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{gbTools(gbToolOf("t", nil)), gbTransform("vandal", func(_ context.Context, r inference.Request) (inference.Request, error) {
		for _, old := range kept { // what it kept from earlier calls
			for i := range old.Messages {
				old.Messages[i].Text = "kept"
			}
		}
		for i := range r.Messages {
			r.Messages[i].Text += "!"
			for j := range r.Messages[i].ToolCalls {
				r.Messages[i].ToolCalls[j].Args = `{"hacked":true}`
			}
		}
		for i := range r.Tools {
			r.Tools[i].Description = "hacked"
		}
		kept = append(kept, r)
		return r, nil
	})}})
	w.say("hi")
	sent := model.sent()
	require.Equal(t, "hi!", sent[0].Messages[0].Text)
	require.Equal(t, "hi!", sent[1].Messages[0].Text, "one change per call, not one on top of the other")
	require.Equal(t, inference.JSON(`{"hacked":true}`), sent[1].Messages[1].ToolCalls[0].Args)
	history := w.messages()
	require.Equal(t, "hi", history[0].Text)
	require.Equal(t, inference.JSON(`{"a":1}`), history[1].ToolCalls[0].Args)
	require.Equal(t, "hacked", sent[0].Tools[0].Description, "for the call it was changed")
	require.Equal(t, []inference.ToolSpec{{Name: "t", Description: "hacked"}}, sent[1].Tools)
}

// A transform that fails fails the inference, naming the plugin, before the model
// is asked; under OnError(Skip) the request stays as it was and the run goes on.
func TestTransformsThatFail(t *testing.T) {
	boom := errors.New("boom")
	for name, fn := range map[string]func(context.Context, inference.Request) (inference.Request, error){
		"error": func(_ context.Context, r inference.Request) (inference.Request, error) {
			r.System = "half done"
			return r, boom
		},
		"panic": func(context.Context, inference.Request) (inference.Request, error) { panic(boom) },
		"goexit": func(context.Context, inference.Request) (inference.Request, error) {
			runtime.Goexit()
			return inference.Request{}, nil
		},
		"hang": func(ctx context.Context, _ inference.Request) (inference.Request, error) { select {} },
	} {
		t.Run(name, func(t *testing.T) {
			var options []engine.TransformOption
			if name == "hang" {
				options = append(options, engine.Timeout(10*time.Millisecond))
			}
			run := func(options ...engine.TransformOption) (*gbWorld, *gbModel, *engine.Result) {
				model := gbScript()
				w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{gbTransform("broken", fn, options...)}})
				w.spec.SystemPrompt = "be kind"
				var res *engine.Result
				done := make(chan struct{})
				go func() { // since a Goexit that gets through would end the test
					defer close(done)
					res, _ = w.thread.Run(t.Context(), w.spec, engine.Prompt("hi"))
				}()
				<-done
				require.NotNil(t, res, "the run must survive")
				return w, model, res
			}
			_, model, res := run(options...)
			require.Equal(t, phase.ReasonError, res.Reason)
			require.ErrorContains(t, res.Err, "broken")
			require.Empty(t, model.sent())
			if name == "error" || name == "panic" {
				require.ErrorIs(t, res.Err, boom)
			}

			w, model, res := run(append(options, engine.OnError(engine.Skip))...)
			require.Equal(t, phase.ReasonNatural, res.Reason)
			require.Equal(t, "be kind", model.sent()[0].System)
			require.Len(t, gbOf[engine.Warning](w.events), 1)
			require.Equal(t, "broken", gbOf[engine.Warning](w.events)[0].Plugin)
		})
	}
}

// A transform that hangs without a deadline does not hold up a cancelled run.
func TestHungTransformIsLeftBehind(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	defer close(release)
	w := gbNew(t, engine.Config{Model: gbScript(), Plugins: []engine.Plugin{gbTransform("stuck", func(_ context.Context, r inference.Request) (inference.Request, error) {
		cancel()
		<-release
		return r, nil
	})}})
	require.Equal(t, phase.ReasonCancelled, w.runCtx(ctx, engine.Prompt("hi")).Reason)
}

// Fault B18. Capability H1. A model that fails in any way ends the run with its
// error; AfterInference, StepEnd and RunEnd fire, once, and can read the cause.
func TestModelsThatFail(t *testing.T) {
	boom := errors.New("503")
	bad := func(resp inference.Response) gbStep {
		return func(context.Context, inference.Request) (inference.Response, error) { return resp, nil }
	}
	for _, c := range []struct {
		name string
		step gbStep
		want string
	}{
		{"error", gbFail(boom), "503"},
		{"error with half a response", func(context.Context, inference.Request) (inference.Response, error) {
			return inference.Response{Message: inference.Assistant("half", gbCall("c9", "t", ""))}, boom
		}, "503"},
		{"panic", func(context.Context, inference.Request) (inference.Response, error) { panic("model broke") }, "model broke"},
		{"goexit", func(context.Context, inference.Request) (inference.Response, error) {
			runtime.Goexit()
			return inference.Response{}, nil
		}, "Goexit"},
		{"duplicate call ids", gbAsk(gbCall("c1", "t", ""), gbCall("c1", "t", "")), "same id"},
		{"no call id", gbAsk(gbCall("", "t", "")), "no id"},
		{"no tool name", gbAsk(gbCall("c1", "", "")), "names no tool"},
		{"zero response", bad(inference.Response{}), "role"},
		{"a user's message", bad(inference.Response{Message: inference.User("x")}), "role"},
		{"negative usage", bad(inference.Response{Message: inference.Assistant("x"), Usage: inference.Usage{InputTokens: -1}}), "negative"},
	} {
		for _, stream := range []bool{false, true} {
			if stream && (c.name == "no call id" || !strings.HasPrefix(c.name, "error") && c.name != "panic") {
				continue // a stream cannot say these, or says them differently
			}
			t.Run(c.name, func(t *testing.T) {
				log := &gbLog{}
				tool := gbToolOf("t", nil)
				script := gbScript(gbAsk(gbCall("c1", "t", "")), c.step)
				var model inference.Model = script
				if stream {
					model = gbStreamer{script}
				}
				w := gbNew(t, engine.Config{
					Model: model, Stream: stream,
					Plugins: []engine.Plugin{gbTools(tool), gbProbe(log), engine.NewPlugin("watch", func(r *engine.Registrar) error {
						for _, p := range []phase.Phase{phase.AfterInference, phase.StepEnd, phase.RunEnd} {
							r.Hook(p, phase.HookFunc(func(_ context.Context, pc *phase.Context) (phase.Command, error) {
								if pc.Err() != nil {
									l := phase.RunLifecycle.Get(pc.Snapshot())
									_, has := pc.Response()
									log.add("watch %s %v %s response=%v", pc.Phase(), strings.Contains(pc.Err().Error(), c.want), l.Reason, has)
								}
								return phase.Command{}, nil
							}))
						}
						return nil
					})},
				})
				res := w.say("go")
				require.Equal(t, phase.ReasonError, res.Reason)
				require.Equal(t, phase.Done, res.Status)
				require.ErrorContains(t, res.Err, c.want)
				if strings.HasPrefix(c.name, "error") {
					require.ErrorIs(t, res.Err, boom)
				}
				require.Equal(t, 2, res.Steps)
				require.Equal(t, 1, tool.ran())
				lines := log.all()
				require.Len(t, gbLines(lines, "after_inference"), 2)
				require.Len(t, gbLines(lines, "step_end"), 2)
				require.Len(t, gbLines(lines, "run_end"), 1)
				require.Equal(t, []string{
					"watch after_inference true  response=false", "watch step_end true  response=false", "watch run_end true error response=false",
				}, gbLines(lines, "watch"))
				require.Len(t, gbOf[engine.RunStarted](w.events), 1)
				finished := gbOf[engine.RunFinished](w.events)
				require.Len(t, finished, 1)
				require.Equal(t, phase.ReasonError, finished[0].Reason)
				require.Contains(t, finished[0].Error, c.want)
				require.Equal(t, phase.Done, phase.RunLifecycle.Get(w.thread.Snapshot()).Status)
				gbPaired(t, w.messages())
				// The thread is fit for another run.
				require.Len(t, w.messages(), 3)
			})
		}
	}
}

// Without a model a run fails and says what to set.
func TestRunWithoutAModel(t *testing.T) {
	w := gbNew(t, engine.Config{})
	res := w.say("hi")
	require.Equal(t, phase.ReasonError, res.Reason)
	require.ErrorContains(t, res.Err, "Config.Model")
}

// The model of the spec is asked; streamed chunks become events, and the response
// that hooks see is the same as without streaming.
func TestStreaming(t *testing.T) {
	type view struct {
		text, sent string
		calls      []inference.ToolCall
	}
	run := func(stream bool) (view, []engine.InferenceChunk) {
		var v view
		script := gbScript(gbSay("one two three"))
		w := gbNew(t, engine.Config{
			Models: map[string]inference.Model{"m": gbStreamer{script}}, Stream: stream,
			Plugins: []engine.Plugin{gbHook("watch", phase.AfterInference, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
				resp, _ := pc.Response()
				req, _ := pc.Request()
				v = view{resp.Message.Text, req.Model, resp.Message.ToolCalls}
				return phase.Command{}, nil
			})},
		})
		w.spec.ModelID = "m"
		res := w.say("hi")
		require.Equal(t, "one two three", res.Text)
		return v, gbOf[engine.InferenceChunk](w.events)
	}
	plain, none := run(false)
	require.Empty(t, none)
	streamed, chunks := run(true)
	require.Equal(t, plain, streamed)
	require.Len(t, chunks, 3)
	require.Equal(t, "two ", chunks[1].Text)
}

// gbStream is a model that streams fn.
type gbStream func(ctx context.Context) iter.Seq2[inference.Chunk, error]

func (s gbStream) Generate(context.Context, inference.Request) (inference.Response, error) {
	return inference.Response{}, errors.New("not asked for")
}

func (s gbStream) Stream(ctx context.Context, _ inference.Request) iter.Seq2[inference.Chunk, error] {
	return s(ctx)
}

// A stream that is nil, that breaks off, or that is given up on does no harm; what
// comes after a cancellation makes no events.
func TestStreamsThatMisbehave(t *testing.T) {
	boom := errors.New("connection reset")
	for name, c := range map[string]struct {
		stream gbStream
		want   error
	}{
		"nil": {func(context.Context) iter.Seq2[inference.Chunk, error] { return nil }, inference.ErrBadResponse},
		"breaks off": {func(context.Context) iter.Seq2[inference.Chunk, error] {
			return func(yield func(inference.Chunk, error) bool) {
				_ = yield(inference.Chunk{Text: "half "}, nil) && yield(inference.Chunk{}, boom)
			}
		}, boom},
		"panics": {func(context.Context) iter.Seq2[inference.Chunk, error] {
			return func(yield func(inference.Chunk, error) bool) { panic(boom) }
		}, boom},
	} {
		t.Run(name, func(t *testing.T) {
			w := gbNew(t, engine.Config{Model: c.stream, Stream: true})
			res := w.say("hi")
			require.Equal(t, phase.ReasonError, res.Reason)
			require.ErrorIs(t, res.Err, c.want)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan bool, 1)
	proceed := make(chan struct{})
	w := gbNew(t, engine.Config{Stream: true, Model: gbStream(func(context.Context) iter.Seq2[inference.Chunk, error] {
		return func(yield func(inference.Chunk, error) bool) {
			yield(inference.Chunk{Text: "early"}, nil)
			cancel()
			<-proceed
			ended <- yield(inference.Chunk{Text: "late"}, nil)
		}
	})})
	res := w.runCtx(ctx, engine.Prompt("hi"))
	require.Equal(t, phase.ReasonCancelled, res.Reason)
	close(proceed)
	require.False(t, <-ended, "the stream is told to stop")
	chunks := gbOf[engine.InferenceChunk](w.events)
	require.Len(t, chunks, 1)
	require.Equal(t, "early", chunks[0].Text)
}

// What a model keeps of its request or response does not reach the thread.
func TestModelsKeepNothing(t *testing.T) {
	kept := inference.Assistant("", gbCall("c1", "t", `{"a":1}`))
	model := inference.ModelFunc(func(_ context.Context, r inference.Request) (inference.Response, error) {
		for i := range r.Messages {
			r.Messages[i].Text = "hacked"
		}
		if len(r.Messages) > 1 {
			kept.ToolCalls[0].Args = `{"hacked":true}`
			return inference.Response{Message: inference.Assistant("done")}, nil
		}
		return inference.Response{Message: kept}, nil
	})
	w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{gbTools(gbToolOf("t", nil))}})
	w.say("hi")
	require.Equal(t, "hi", w.messages()[0].Text)
	require.Equal(t, inference.JSON(`{"a":1}`), w.messages()[1].ToolCalls[0].Args)
}

// What hooks see of a request and a response is what was sent and answered, also
// when a transform or a model changes later what it gave away.
func TestHooksSeeWhatWasSent(t *testing.T) {
	var kept inference.Request
	answer := inference.Assistant("", gbCall("c1", "t", `{"a":1}`))
	var req inference.Request
	var resp inference.Response
	w := gbNew(t, engine.Config{
		Model: gbScript(func(context.Context, inference.Request) (inference.Response, error) {
			return inference.Response{Message: answer}, nil
		}),
		Plugins: []engine.Plugin{
			gbTools(gbToolOf("t", nil)),
			gbTransform("keeper", func(_ context.Context, r inference.Request) (inference.Request, error) {
				kept = r
				return r, nil
			}),
			gbHook("watch", phase.AfterInference, func(_ context.Context, pc *phase.Context) (phase.Command, error) {
				if pc.Run().Step == 1 {
					kept.Messages[0].Text, kept.Tools[0].Name = "hacked", "hacked"
					answer.ToolCalls[0].Args = `{"hacked":true}`
					req, _ = pc.Request()
					resp, _ = pc.Response()
				}
				return phase.Command{}, nil
			}),
		},
	})
	w.say("hi")
	require.Equal(t, "hi", req.Messages[0].Text)
	require.Equal(t, "t", req.Tools[0].Name)
	require.Equal(t, inference.JSON(`{"a":1}`), resp.Message.ToolCalls[0].Args)
}

// Capability G1. A hook may rewrite the message that the model answered with, so that no
// model reads it as it was. The tool calls are those of the answer all the same: what
// changes them is a gate.
func TestStoredMessageCanBeRewritten(t *testing.T) {
	tool := gbToolOf("t", func(_ context.Context, pc *phase.Context) (engine.Output, error) {
		return engine.Text(string(pc.Call().Args)), nil
	})
	model := gbScript(func(context.Context, inference.Request) (inference.Response, error) {
		return inference.Response{Message: inference.Assistant("the key is hunter2", gbCall("c1", "t", `{"n":1}`))}, nil
	})
	w := gbNew(t, engine.Config{Model: model, Plugins: []engine.Plugin{gbTools(tool),
		gbHook("redact", phase.AfterInference, func(_ context.Context, pc *phase.Context) (cmd phase.Command, err error) {
			history := pc.Messages().Slice()
			last := &history[len(history)-1]
			last.Text = strings.ReplaceAll(last.Text, "hunter2", "***")
			for i := range last.ToolCalls {
				last.ToolCalls[i].Args = `{"n":2}`
			}
			cmd.Update(engine.Transcript.Replace(history...))
			return cmd, nil
		})}})
	res := w.say("go")
	require.NoError(t, res.Err)
	require.Equal(t, "the key is ***", model.sent()[1].Messages[1].Text)
	require.Equal(t, `{"n":1}`, w.one().Content)
	for _, m := range w.messages() {
		require.NotContains(t, m.Text, "hunter2")
	}
	gbPaired(t, w.messages())
	require.Equal(t, "the key is hunter2", gbOf[engine.InferenceFinished](w.events)[0].Text, "observers were told before")
}
