package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/autocommit"
	"github.com/ddd26017/fixpoint/plugins/checks"
	"github.com/ddd26017/fixpoint/plugins/files"
)

// committed is what a run left in its repository.
type committed struct {
	verdict checks.Verdict
	result  autocommit.Result
	commits []string // subjects, the newest first
	changed string   // what git has to say about the work tree; "" when all is committed
	history []inference.Message
	hooks   []engine.HookFinished // those that ran at the end of the run
}

// write lets a model write a plan into a new git repository. The check wants the plan to say
// that it is finished, which it does only at the second attempt.
func write(ctx context.Context, attempts int) (c committed, err error) {
	dir, err := os.MkdirTemp("", "gptme")
	if err != nil {
		return c, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := repository(ctx, dir); err != nil {
		return c, err
	}
	tools, err := files.Open(dir, files.Options{})
	if err != nil {
		return c, err
	}
	plan := func(id, text string) enginetest.Answer {
		return enginetest.Call(id, "write_file", map[string]string{"path": "plan.txt", "content": text})
	}
	seen := &enginetest.Recorder{}
	th, err := run(ctx, engine.Config{
		// In this order, so that it is seen to be the tiers that count.
		Plugins: []engine.Plugin{
			tools,
			autocommit.New(autocommit.Options{Dir: dir, Name: "Agent", Email: "agent@example.com", Now: enginetest.Epoch}),
			checks.New(checks.Options{Dir: dir}),
		},
		Model: enginetest.NewScript(
			plan("c1", "to do\n"), enginetest.Say("Done."),
			plan("c2", "finished\n"), enginetest.Say("Done, really.")),
		Observers: []engine.Observer{seen},
	}, engine.AgentSpec{ID: "gptme", Sections: map[string]inference.JSON{
		"checks": inference.JSON(fmt.Sprintf(
			`{"commands": [{"name": "the plan is finished", "args": ["git", "grep", "--untracked", "-q", "finished"]}], "attempts": %d}`, attempts)),
		"autocommit": `{"enabled": true, "message": "{{.Task}}"}`,
	}}, engine.Prompt("Write the plan"))
	if err != nil {
		return c, err
	}
	snap := th.Snapshot()
	c.verdict, c.result = checks.Last.Get(snap), autocommit.Last.Get(snap)
	c.history = engine.Transcript.Get(snap).Slice()
	for _, h := range enginetest.Select[engine.HookFinished](seen.Events()) {
		if h.Head().Phase == phase.RunEnd {
			c.hooks = append(c.hooks, h)
		}
	}
	subjects, err := git(ctx, dir, "log", "--format=%an: %s")
	if err != nil {
		return c, err
	}
	c.commits = strings.Split(subjects, "\n")
	c.changed, err = git(ctx, dir, "status", "--porcelain")
	return c, err
}

// repository makes a git repository with one commit.
func repository(ctx context.Context, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "README"), []byte("A garden.\n"), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "README"}, {"commit", "-q", "-m", "Begin"}} {
		if _, err := git(ctx, dir, args...); err != nil {
			return err
		}
	}
	return nil
}

// isolate keeps the settings of whoever runs the program from git.
func isolate() {
	_ = os.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	_ = os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
}

// git runs git for the person whose repository it is, with no settings but these.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Person", "GIT_AUTHOR_EMAIL=person@example.com",
		"GIT_COMMITTER_NAME=Person", "GIT_COMMITTER_EMAIL=person@example.com",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
