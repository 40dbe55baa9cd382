package autocommit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/autocommit"
	"github.com/ddd26017/fixpoint/plugins/checks"
	"github.com/ddd26017/fixpoint/store/faultstore"
	"github.com/ddd26017/fixpoint/store/memstore"
)

// agent is an engine with the plugin, package checks and a tool that runs a script.
type agent struct {
	t    *testing.T
	dir  string
	th   *engine.Thread
	eng  *engine.Engine
	spec engine.AgentSpec
	ctx  context.Context
	done []autocommit.Result

	after map[string]string // the repository after the last script
}

// TestMain keeps the configuration of whoever runs the tests out of them.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"HOME": os.DevNull, "XDG_CONFIG_HOME": os.DevNull, "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// made is what repository has, made once, since git takes its time.
var made struct {
	sync.Once
	files fstest.MapFS
}

// repository has a commit of some files: a and b, and c in a folder.
func repository(t *testing.T) string {
	t.Helper()
	made.Do(func() {
		dir := t.TempDir()
		run(t, dir, "git init -q --template= -b main; printf 'a\n' > a; printf 'b\n' > b; mkdir d; printf 'c\n' > d/c; printf '*.o\n' > .gitignore; git add .; git commit -qm first")
		made.files = fstest.MapFS{}
		require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := e.Info()
			require.NoError(t, err)
			made.files[name] = &fstest.MapFile{Mode: info.Mode()}
			if !e.IsDir() {
				made.files[name].Data, err = os.ReadFile(filepath.Join(dir, name))
			}
			return err
		}))
	})
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, made.files))
	return dir
}

// run runs a script as a user would.
func run(t *testing.T, dir, script string) string {
	t.Helper()
	out, err := shell(t.Context(), dir, script)
	require.NoError(t, err, "%s: %s", script, out)
	return strings.TrimSuffix(out, "\n")
}

func shell(ctx context.Context, dir, script string) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=user", "GIT_AUTHOR_EMAIL=user@example.com", "GIT_COMMITTER_NAME=user", "GIT_COMMITTER_EMAIL=user@example.com")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func newAgent(t *testing.T, dir string, settings map[string]any, configure func(*autocommit.Options, *engine.Config), scripts ...string) *agent {
	t.Helper()
	a := &agent{t: t, dir: dir, spec: engine.AgentSpec{ID: "coder"}, ctx: t.Context()}
	settings["enabled"] = true
	a.section(autocommit.Name, settings)
	o := autocommit.Options{Dir: dir, Name: "Agent", Email: "agent@example.com", Now: enginetest.NewClock(enginetest.Epoch()).Now,
		OnDone: func(_ context.Context, r autocommit.Result) error { a.done = append(a.done, r); return nil }}
	config, _ := enginetest.Config(t)
	var answers []enginetest.Answer
	for _, script := range scripts {
		answers = append(answers, enginetest.Call(script, "sh", map[string]string{"script": script}))
	}
	say := enginetest.Say("It is done.")
	config.Model = enginetest.NewScript(append(answers, say, say, say, say)...)
	if configure != nil {
		configure(&o, &config)
	}
	config.Plugins = []engine.Plugin{autocommit.New(o), checks.New(checks.Options{Dir: dir}), engine.NewPlugin("sh", func(r *engine.Registrar) error {
		type args struct {
			Script string `json:"script"`
		}
		r.Tool(rerun{engine.NewTool(inference.ToolSpec{Name: "sh", Kind: "execute"}, func(ctx context.Context, _ *phase.Context, in args) (engine.Output, error) {
			out, err := shell(ctx, dir, in.Script)
			a.after = a.repo()
			return engine.Text(out), err
		})})
		return nil
	})}
	a.eng = enginetest.Engine(t, config)
	var err error
	a.th, err = a.eng.NewThread("t")
	require.NoError(t, err)
	return a
}

// rerun is a tool that may run twice.
type rerun struct{ engine.Tool }

func (rerun) Recovery() engine.Recovery { return engine.Rerun }

func (a *agent) section(name string, settings map[string]any) {
	text, err := json.Marshal(settings)
	require.NoError(a.t, err)
	sections := map[string]inference.JSON{name: inference.JSON(text)}
	for other, s := range a.spec.Sections {
		if other != name {
			sections[other] = s
		}
	}
	a.spec.Sections = sections
}

// run runs the agent and returns what came of it.
func (a *agent) run() autocommit.Result {
	a.t.Helper()
	res, err := a.th.Run(a.ctx, a.spec, engine.Prompt("Do it, please.\nAll of it."))
	require.NoError(a.t, err)
	if a.ctx.Err() == nil {
		require.NoError(a.t, res.Err)
	}
	for _, d := range a.th.DeadLetters() {
		a.t.Errorf("dead letter %s: %s", d.Action.Name(), d.Reason)
	}
	return autocommit.Last.Get(a.th.Snapshot())
}

func (a *agent) git(args string) string {
	a.t.Helper()
	return run(a.t, a.dir, "git --no-optional-locks "+args)
}

// repo returns all that the repository is, besides its objects, byte by byte.
func (a *agent) repo() map[string]string {
	a.t.Helper()
	out := map[string]string{}
	top := filepath.Join(a.dir, ".git")
	if _, err := os.Stat(top); os.IsNotExist(err) { // it is above
		return out
	}
	require.NoError(a.t, filepath.WalkDir(top, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			if e.IsDir() && e.Name() == "objects" {
				return fs.SkipDir
			}
			return err
		}
		text, err := os.ReadFile(name)
		out[strings.TrimPrefix(name, top)] = string(text)
		return err
	}))
	return out
}

// Capability G7. Exactly what the agent changed is committed; all else, modified, new
// or staged, is as the user left it.
func TestCommitsWhatTheAgentChanged(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	run(t, dir, "echo mine >> b; echo staged > staged; git add staged; echo more >> staged; echo new > new; touch x.o")
	before := run(t, dir, "git status --porcelain")
	a := newAgent(t, dir, map[string]any{}, nil,
		"echo agent >> a; mkdir deep; echo deep > deep/file; rm d/c; echo '#!/bin/sh' > run; chmod +x run; ln -s a link; echo o > y.o")
	res := a.run()
	require.Equal(t, autocommit.Committed, res.Status, res.Why)
	require.Empty(t, res.Why)
	require.Equal(t, []string{"a", "d/c", "deep/file", "link", "run"}, res.Paths)
	require.Equal(t, 5, res.Files)
	require.Equal(t, "refs/heads/main", res.Branch)
	require.Equal(t, res.Commit, a.git("rev-parse HEAD"))
	require.Equal(t, []autocommit.Result{res}, a.done, "the effect tells it too")

	require.Equal(t, before, a.git("status --porcelain"))
	require.Equal(t, "first", a.git("log -1 --format=%s HEAD~1"))
	require.Equal(t, fmt.Sprintf("Agent|agent@example.com|Agent|%d|Change 5 files", enginetest.Epoch().Unix()), a.git("log -1 --format='%an|%ae|%cn|%at|%s'"))
	require.Equal(t, "M\ta\nD\td/c\nA\tdeep/file\nA\tlink\nA\trun", a.git("show --format= --name-status HEAD"))
	require.Contains(t, a.git("ls-tree HEAD run link"), "120000 blob")
	require.Contains(t, a.git("ls-tree HEAD run"), "100755 blob")
	require.Contains(t, a.git("reflog -1 main"), "commit: by an agent")
	require.Equal(t, autocommit.Unchanged, a.run().Status, "there is nothing more")
}

// Capability G2. As long as the checks of an earlier tier fail there is no commit; once
// they have passed there is.
func TestFailedChecksKeepFromCommitting(t *testing.T) {
	t.Parallel()
	a := newAgent(t, repository(t), map[string]any{}, nil, "echo bad > a")
	a.section(checks.Name, map[string]any{"attempts": 1, "commands": []map[string]any{{"args": []string{"grep", "-q", "good", "a"}}}})
	before := a.repo()
	require.Empty(t, a.run(), "nobody was asked to commit")
	require.False(t, checks.Last.Get(a.th.Snapshot()).Passed())
	require.Equal(t, before, a.repo())

	a = newAgent(t, repository(t), map[string]any{}, nil, "echo bad > a", "echo good > a")
	a.section(checks.Name, map[string]any{"commands": []map[string]any{{"args": []string{"grep", "-q", "good", "a"}}}})
	require.Equal(t, autocommit.Committed, a.run().Status)
	require.Equal(t, "good", a.git("show HEAD:a"))
}

// What the user had in hand is never swept in: then there is no commit at all.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		before, agent string
		why           string
		paths         []string
	}{
		"modified":     {"echo mine >> a", "echo agent >> a; echo agent > z", "before the run", []string{"a"}},
		"new":          {"echo mine > n", "echo agent >> n", "before the run", []string{"n"}},
		"staged":       {"echo mine >> a; git add a; git show HEAD:a > a", "echo agent >> a", "before the run", []string{"a"}},
		"deleted":      {"rm b", "echo agent > b", "before the run", []string{"b"}},
		"removed":      {"echo mine >> b", "rm b", "before the run", []string{"b"}},
		"staged now":   {"true", "echo other > a; git add a; echo agent > a", "is staged", []string{"a"}},
		"other branch": {"true", "echo agent > a; git checkout -q -b other", "the branch is other and was main", nil},
		"detached":     {"true", "echo agent > a; git checkout -q --detach", "the branch is none and was main", nil},
		"merging":      {"git checkout -q -b o; git commit -q --allow-empty -m o; git checkout -q main; git commit -q --allow-empty -m m; git merge -q --no-commit --no-ff o", "echo agent > a", "a merge is under way", nil},
		"conflicts": {"git checkout -q -b o; echo o > a; git commit -qam o; git checkout -q main; echo m > a; git commit -qam m; git merge o || true; git checkout -q --ours a; rm .git/MERGE_HEAD .git/MERGE_M*", "echo agent > b",
			"conflicts in the index", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := repository(t)
			run(t, dir, c.before)
			a := newAgent(t, dir, map[string]any{}, nil, c.agent)
			res := a.run()
			require.Equal(t, autocommit.Refused, res.Status, res.Why)
			require.Contains(t, res.Why, c.why)
			require.Equal(t, c.paths, res.Paths)
			require.Empty(t, res.Commit)
			require.Equal(t, a.after, a.repo())
		})
	}
}

// What the agent committed or staged itself is no obstacle; the rest is committed.
func TestAgentUsesGit(t *testing.T) {
	t.Parallel()
	a := newAgent(t, repository(t), map[string]any{}, nil,
		"echo one > a; git commit -qam 'by hand'; echo two > b; git add b; echo three > new; git add -N new; echo four > d/c")
	res := a.run()
	require.Equal(t, autocommit.Committed, res.Status, res.Why)
	require.Equal(t, []string{"b", "d/c", "new"}, res.Paths)
	require.Equal(t, "by hand", a.git("log -1 --format=%s HEAD~1"))
	require.Empty(t, a.git("status --porcelain"))
}

// Before the first commit, in a folder of a repository, with line endings to be
// changed, with its own objects' format: as git itself would.
func TestRepositories(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ make, agent, dir, want, status string }{
		"unborn":       {"git init -q --template= -b main; echo mine > mine", "echo a > a", "", "A\ta", "?? mine"},
		"sha256":       {"git init -q --template= -b main --object-format=sha256; echo m > m; git add .; git commit -qm 1", "echo a > a; rm m", "", "A\ta\nD\tm", ""},
		"folder":       {"git init -q --template= -b main; mkdir in; echo i > in/i; echo o > o; git add .; git commit -qm 1", "echo a > i; echo a > ../o; echo p > ../p; git add ../p", "in", "M\tin/i", " M o\nA  p"},
		"line endings": {"git init -q --template= -b main; git config core.autocrlf true; echo m > m; git add .; git commit -qm 1 2>/dev/null", "printf 'a\\r\\nb\\r\\n' > a", "", "A\ta", ""},
		"detached":     {"git init -q --template= -b main; echo m > m; git add .; git commit -qm 1; git checkout -q --detach", "echo a > a", "", "A\ta", ""},
		"submodule": {"git init -q --template= -b main; git init -q --template= sub; cd sub; git commit -qm s --allow-empty; cd ..; git add sub 2>/dev/null; git commit -qm 1",
			"echo a > a; cd sub; git commit -qm more --allow-empty; cd ..; git init -q --template= other; cd other; git commit -qm o --allow-empty", "", "A\ta", " M sub\n?? other/"},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			run(t, top, c.make)
			a := newAgent(t, filepath.Join(top, c.dir), map[string]any{}, nil, c.agent)
			res := a.run()
			require.Equal(t, autocommit.Committed, res.Status, res.Why)
			require.Empty(t, res.Why)
			require.Equal(t, c.want, run(t, top, "git show --root --format= --name-status HEAD"))
			require.Equal(t, c.status, run(t, top, "git --no-optional-locks status --porcelain"))
			require.NotContains(t, run(t, top, "git cat-file blob HEAD:a 2>/dev/null || true"), "\r")
		})
	}
}

// Hooks run only when they are asked for, and then they decide.
func TestHooks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hook, script string
		status       autocommit.Status
		why, message string
		paths        []string
	}{
		"all is well":  {"post-commit", "echo post >> .git/ran", autocommit.Committed, "", "Change a", []string{"a"}},
		"refusing":     {"pre-commit", "echo 'not like this'; git diff --cached --name-only; exit 1", autocommit.Refused, "the hook pre-commit refused", "first", nil},
		"formatting":   {"pre-commit", "echo formatted > a; git add a", autocommit.Committed, "", "Change a", []string{"a"}},
		"sweeping":     {"pre-commit", "git add mine", autocommit.Refused, "staged files that the agent did not change", "first", []string{"mine"}},
		"undoing":      {"pre-commit", "git reset -q", autocommit.Unchanged, "", "first", nil},
		"wording":      {"commit-msg", "echo \"$(cat \"$1\" | head -1), says the hook\" > \"$1\"", autocommit.Committed, "", "Change a, says the hook", []string{"a"}},
		"wordless":     {"commit-msg", ": > \"$1\"", autocommit.Refused, "no message", "first", nil},
		"ill at last":  {"post-commit", "exit 1", autocommit.Committed, "the hook post-commit", "Change a", []string{"a"}},
		"missing hook": {"pre-push", "echo post >> .git/ran; exit 1", autocommit.Committed, "", "Change a", []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, asked := range []bool{false, true} {
				dir := repository(t)
				run(t, dir, "echo mine > mine; mkdir -p .git/hooks")
				hook := filepath.Join(dir, ".git", "hooks", c.hook)
				require.NoError(t, os.WriteFile(hook, []byte("#!/bin/sh\n"+c.script+"\n"), 0o755))
				a := newAgent(t, dir, map[string]any{"hooks": asked}, nil, "echo agent > a")
				res := a.run()
				if !asked {
					require.Equal(t, autocommit.Committed, res.Status, res.Why)
					require.Empty(t, res.Why)
					require.Equal(t, "agent", a.git("show HEAD:a"))
					require.NoFileExists(t, filepath.Join(dir, ".git", "ran"))
					continue
				}
				require.Equal(t, c.status, res.Status, res.Why)
				require.Contains(t, res.Why, c.why)
				require.Equal(t, c.paths, res.Paths)
				require.Equal(t, c.message, a.git("log -1 --format=%s"))
				require.Contains(t, a.git("status --porcelain"), "?? mine")
				if res.Status == autocommit.Committed {
					require.Equal(t, "?? mine", a.git("status --porcelain"))
				}
			}
		})
	}
}

// crashes calls fn once for each way in which an append is the last of a process: it
// came about or it did not.
func crashes(t *testing.T, n int, fn func(a *agent)) {
	t.Helper()
	seen := map[uint64]bool{}
	for seed := uint64(0); seed < 16 && len(seen) < 2; seed++ {
		a, _ := crash(t, n, seed)
		if at := a.th.Snapshot().Revision(); !seen[at] {
			seen[at] = true
			fn(a)
		}
	}
	require.Len(t, seen, 2, "crash at append %d", n)
}

// crash is an agent whose process ended at the n-th append, which came about or not by
// the seed, and which works on in another process. With n 0 it does not end, and the
// number of appends is returned.
func crash(t *testing.T, n int, seed uint64) (a *agent, appends int) {
	t.Helper()
	inner := memstore.New(memstore.Options{})
	config := faultstore.Config{Seed: seed}
	if n > 0 {
		config.At = map[int]faultstore.Fault{n: faultstore.Crash}
	}
	broken, err := faultstore.New(inner, config)
	require.NoError(t, err)
	use := func(j engine.Journal) func(*autocommit.Options, *engine.Config) {
		return func(_ *autocommit.Options, c *engine.Config) { c.Journal, c.NewID = j, nil }
	}
	dir := repository(t)
	a = newAgent(t, dir, map[string]any{}, use(broken), "echo agent > a")
	_, err = a.th.Run(t.Context(), a.spec, engine.Prompt("go"))
	require.NoError(t, err)
	require.Equal(t, min(n, 1), broken.Counts().Faults[faultstore.Crash])
	a = newAgent(t, dir, map[string]any{}, use(inner), "echo agent > a")
	a.th, err = a.eng.OpenThread(t.Context(), "t")
	require.NoError(t, err)
	return a, broken.Counts().Calls[faultstore.OpAppend]
}

// unfollow makes the repository what it is if the process ended between the move of the
// branch and the change of the index, if it may have ended there.
func (a *agent) unfollow() bool {
	if autocommit.Last.Get(a.th.Snapshot()).Status != "" || a.git("rev-list --count HEAD") != "2" {
		return false
	}
	a.git("read-tree HEAD~1")
	return true
}

// Capability B6. Wherever a process ends, the changes are committed once, and the
// user's index is right.
func TestCommittedOnce(t *testing.T) {
	t.Parallel()
	_, appends := crash(t, 0, 0)
	resumed, between := 0, 0
	for n := 3; n <= appends; n++ {
		if n%3 != 0 && n < appends-2 { // the end is where the commit is
			continue
		}
		crashes(t, n, func(a *agent) {
			if phase.RunLifecycle.Get(a.th.Snapshot()).Status == phase.Running {
				resumed++
				if a.unfollow() {
					between++
				}
				res, err := a.th.Resume(t.Context(), a.spec, engine.Input{})
				require.NoError(t, err)
				require.NoError(t, res.Err)
			} else if autocommit.Last.Get(a.th.Snapshot()).Status == "" {
				return // the run had not begun
			}
			last := autocommit.Last.Get(a.th.Snapshot())
			require.Equal(t, autocommit.Committed, last.Status, "crash at append %d: %s", n, last.Why)
			require.Equal(t, "2", a.git("rev-list --count HEAD"), "crash at append %d", n)
			require.Empty(t, a.git("status --porcelain"), "crash at append %d", n)
			require.Equal(t, last.Commit, a.git("rev-parse HEAD"))
		})
	}
	require.Greater(t, resumed, 5, "the process has to end in many places")
	require.Positive(t, between, "also between the commit and the knowledge of it")
}

// A run is given up after its commit was made and before that was known: the next run of
// the thread leaves everything in order.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	_, appends := crash(t, 0, 0)
	between := 0
	for n := appends - 2; n <= appends; n++ {
		crashes(t, n, func(a *agent) {
			if !a.unfollow() {
				return
			}
			between++
			res, err := a.th.Run(t.Context(), a.spec, engine.Prompt("go"))
			require.NoError(t, err)
			require.NoError(t, res.Err)
			require.Equal(t, "2", a.git("rev-list --count HEAD"), "crash at append %d", n)
			require.Empty(t, a.git("status --porcelain"), "crash at append %d", n)
		})
	}
	require.Positive(t, between, "the process has to end between the commit and the knowledge of it")
}

// A run that ended otherwise is not committed, unless its section says so.
func TestReasons(t *testing.T) {
	t.Parallel()
	a := newAgent(t, repository(t), map[string]any{}, nil, "echo agent > a")
	a.spec.MaxRounds = 1
	require.Empty(t, a.run())
	a.section(autocommit.Name, map[string]any{"enabled": true, "reasons": []string{"natural", "max_rounds"}})
	a.spec.MaxRounds = 0
	require.Equal(t, autocommit.Unchanged, a.run().Status, "what an earlier run did is not this one's")
	b := newAgent(t, repository(t), map[string]any{"reasons": []string{"max_rounds"}}, nil, "echo agent > a")
	b.spec.MaxRounds = 1
	require.Equal(t, autocommit.Committed, b.run().Status)

	c := newAgent(t, repository(t), map[string]any{}, nil, "echo agent > a")
	c.spec.Sections = nil
	require.Empty(t, c.run(), "nobody asked for it")
	require.Equal(t, " M a", c.git("status --porcelain"))

	ctx, cancel := context.WithCancel(t.Context())
	d := newAgent(t, repository(t), map[string]any{}, func(_ *autocommit.Options, c *engine.Config) {
		stop := enginetest.Say("done")
		stop.Wait = func(ctx context.Context) error { cancel(); return ctx.Err() }
		c.Model = enginetest.NewScript(enginetest.Call("1", "sh", map[string]string{"script": "echo agent > a"}), stop)
	})
	d.ctx = ctx
	require.Empty(t, d.run())
	require.Equal(t, " M a", d.git("status --porcelain"))
}

// What goes wrong is told, and does not undo what was done.
func TestFaults(t *testing.T) {
	t.Parallel()
	locked := newAgent(t, repository(t), map[string]any{}, nil, "echo agent > a; touch .git/index.lock")
	res := locked.run()
	require.Equal(t, autocommit.Committed, res.Status)
	require.Contains(t, res.Why, "index.lock")
	require.Equal(t, "agent", locked.git("show HEAD:a"))

	nobody := newAgent(t, repository(t), map[string]any{}, func(o *autocommit.Options, _ *engine.Config) { o.Name, o.Email = "", "" }, "git config user.useConfigOnly true; echo agent > a")
	res = nobody.run()
	require.Equal(t, autocommit.Failed, res.Status)
	require.Contains(t, res.Why, "commit-tree")

	ref := newAgent(t, repository(t), map[string]any{}, nil, "echo agent > a; mkdir -p .git/refs/heads; touch .git/refs/heads/main.lock")
	res = ref.run()
	require.Equal(t, autocommit.Failed, res.Status)
	require.Contains(t, res.Why, "main.lock")
	require.Equal(t, " M a", ref.git("status --porcelain"))

	outside := newAgent(t, t.TempDir(), map[string]any{}, func(_ *autocommit.Options, _ *engine.Config) {})
	end, err := outside.th.Run(t.Context(), outside.spec, engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, end.Err)
	require.Equal(t, "how the files were when the run began is not known", autocommit.Last.Get(outside.th.Snapshot()).Why)
}

// The message is a template; the section's author goes before that of the options.
func TestMessage(t *testing.T) {
	t.Parallel()
	a := newAgent(t, repository(t), map[string]any{"name": "Someone", "email": "someone@example.com",
		"message": "{{.Task}}\n\n{{.Text}}\n{{range .Paths}}- {{.}}\n{{end}}# {{.Agent}} {{.Thread}} {{.Run}}"}, nil, "echo agent > a; echo agent > b")
	require.Equal(t, autocommit.Committed, a.run().Status)
	require.Equal(t, "Someone someone@example.com\nDo it, please.\n\nIt is done.\n- a\n- b\n# coder t id-1", strings.TrimSpace(a.git("log -1 --format='%an %ae%n%B'")))
}

// The same run gives the same commit.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	enginetest.CheckDeterminism(t, 3, func(enginetest.Shuffle) []string {
		a := newAgent(t, repository(t), map[string]any{}, nil, "echo agent > a")
		return []string{a.run().Commit}
	})
}

func TestFaultySettings(t *testing.T) {
	a := newAgent(t, t.TempDir(), map[string]any{}, nil)
	for _, s := range []string{`{"message": ""}`, `{"message": "{{"}`, `{"message": "{{.Nothing}}"}`, `{"message": " \n"}`, `{"name": "a <b>"}`, `{"email": "a\nb"}`, `{"reasons": [""]}`, `{"push": true}`} {
		a.spec.Sections = map[string]inference.JSON{autocommit.Name: inference.JSON(s)}
		require.ErrorIs(t, a.eng.Check(a.spec), engine.ErrSpec, s)
	}
}
