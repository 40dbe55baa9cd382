// Package compact is a plugin that keeps long conversations within what a model can read:
// a summary takes the place of the older messages in requests.
//
//	engine.Config{Plugins: []engine.Plugin{compact.New(compact.Options{
//		Summarizer: compact.ByModel(model, "small-model"),
//	})}}
//
// The thread's transcript stays whole. The summary and the place up to which it stands for
// messages are state of the thread (Held), so they survive runs, handoffs and processes,
// and a fork has them if they were there at its revision. A transform puts the summary
// into each request; register the plugin before those whose transforms add or take away
// messages.
//
// # What stays
//
// The latest messages stay, a call always with its results. Of the older ones stay pinned
// ones (Pinned), the user's last message if there is no later one, and system messages, of
// which the last counts when several say the same. The next summary is made of the former
// one and what came to be older since.
//
// Plugins that tell the model the time or what was used add system messages too, which
// nobody needs later on. Unless "transient" matches them they stay in each request for
// good, and a long thread grows by them whatever is compacted:
//
//	"transient": "^(It is|The run stood still|This run has|You may use|Your context window)"
//
// # When
//
// Compact is an action before the model is asked, and the same request profits. The
// plugin schedules it when a request would be larger than max_tokens, by the usage that
// the model reported last and an estimate of what came since, or by estimate alone, unless
// less than min_saving could be saved. The slash command /compact and other plugins schedule it too:
//
//	cmd.Schedule(compact.Compact.New(compact.Args{Reason: "tidy", Thread: pc.Run().Thread}))
//
// The section "compact" of an agent spec has these settings, here with their defaults:
//
//	"compact": {"max_tokens": 100000, "keep_recent": 8, "min_saving": 2000,
//		"summary_tokens": 1000, "timeout": "1m", "fallback_after": 3, "bytes_per_token": 4,
//		"instructions": "", "transient": ""}
//
// # Summaries
//
// A Summarizer writes them: ByModel asks a model, and Digest, the default, shortens without
// one. It is called in the action's handler, so a run waits for it, and what it uses counts
// for the run. If it fails in any way, takes too long, or its summary does not save enough,
// nothing changes and the model is asked all the same, the action Failed tells why as a dead
// letter, and automatic attempts leave out 1, 2, 4 and at most 32 steps that would want one;
// after a number of failures a digest helps out.
//
// # Other plugins
//
// Gates on Compact cancel it or replace it by a summary of their own:
//
//	r.ActionGate(gate.OnAction(compact.Compact, func(ctx context.Context, pc *phase.Context, args compact.Args) (gate.Ruling, error) {
//		cut, err := compact.Prepare(pc, args)
//		if err != nil {
//			return gate.Ruling{}, err
//		}
//		cmd, err := cut.Command("What matters of it.")
//		return gate.Replace("knows better", cmd), err
//	}))
//
// Lines in Notes go into the next summary, and stay in the state until there is one. After each compaction the action Invalidated
// tells that what caches know is void. An engine has one handler for a kind of action, so
// others look at the key Last in hooks of later phases, or subscribe to the thread.
//
// Given a summarizer that is deterministic, so is the plugin.
package compact
