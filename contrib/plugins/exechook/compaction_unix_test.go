//go:build unix

package exechook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/plugins/exechook"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins/compact"
)

// compacting is a stage on which the second model call comes with a long history.
func compacting(t *testing.T) *stage {
	s := newStage(t)
	s.options.Compacts = true
	s.plugins = []engine.Plugin{compact.New(compact.Options{})}
	s.spec.Sections = map[string]inference.JSON{compact.Name: `{"max_tokens": 50, "keep_recent": 1, "min_saving": 1, "summary_tokens": 10}`}
	return s
}

// fates returns what became of the compactions, and who kept them from happening.
func (s *stage) fates() (all []string) {
	for _, e := range enginetest.Select[engine.ActionFinished](s.rec.Events()) {
		if e.Action == compact.Compact.Name() {
			all = append(all, strings.TrimSpace(string(e.Status)+" "+e.By+" "+e.Reason))
		}
	}
	return all
}

func long() []enginetest.Answer {
	call := bash("c", strings.Repeat("echo a very long line; ", 40))
	return []enginetest.Answer{call, bash("d", "true")}
}

// Capability M9. Capability M7. A program cancels a compaction; one that has no opinion,
// or is about another trigger, lets it happen.
func TestPreCompact(t *testing.T) {
	for name, c := range map[string]struct {
		matcher, body string
		cancelled     string
	}{
		"exit 2":     {"", "echo mid-task >&2; exit 2", "mid-task"},
		"decision":   {"auto", `echo '{"decision":"block","reason":"later"}'`, "later"},
		"end":        {"auto", `echo '{"continue":false}'`, "said no"},
		"no opinion": {"auto", "cat > seen.json", ""},
		"by hand":    {"manual", "exit 2", ""},
		"it failed":  {"", "exit 3", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := compacting(t)
			s.on(exechook.PreCompact, c.matcher, s.script("hook.sh", c.body))
			res := s.play(long()...)
			require.NoError(t, res.Err)
			fates := s.fates()
			require.NotEmpty(t, fates)
			if c.cancelled == "" {
				require.Equal(t, "done", fates[0])
			} else {
				require.Contains(t, fates[0], "cancelled exechook ")
				require.Contains(t, fates[0], c.cancelled)
			}
			switch name {
			case "no opinion":
				require.Contains(t, s.file("seen.json"), `"hook_event_name":"PreCompact"`)
				require.Contains(t, s.file("seen.json"), `"trigger":"auto"`)
			case "it failed":
				require.NotEmpty(t, s.notices)
				require.Equal(t, exechook.FailureNotice, s.notices[0].Kind)
				require.Equal(t, exechook.PreCompact, s.notices[0].Event)
			}
		})
	}
}

// A rule may have a failure of its program keep compactions from happening. They are
// dead letters then, since nobody said no.
func TestPreCompactFailsClosedIfAsked(t *testing.T) {
	s := compacting(t)
	s.on(exechook.PreCompact, "", "./missing", failOpen(false))
	res := s.play(long()...)
	require.NoError(t, res.Err)
	require.NotEmpty(t, s.fates())
	require.Contains(t, s.fates()[0], string(engine.ActionDead))
	require.Positive(t, res.Stats.DeadLetters)
}

// Where nothing compacts, rules about it are warned about.
func TestPreCompactWithoutCompaction(t *testing.T) {
	s := newStage(t)
	s.on(exechook.PreCompact, "", "exit 2")
	require.NoError(t, s.play().Err)
	warnings := enginetest.Select[engine.Warning](s.rec.Events())
	require.NotEmpty(t, warnings)
	require.Contains(t, warnings[0].Message, "Options.Compacts")
}
