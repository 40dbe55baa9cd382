package allowlist_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/contrib/plugins/allowlist"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/gate"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/confirm"
	"github.com/ddd26017/fixpoint/plugins/permission"
)

const list = `{
	"allow": ["ls *", "wc *", "echo *", "true", "git status", "git log *", "go test ./...", "find *", "sort *", "tar *", "cat docs/*", "[ *", "test *",
		"./run.sh", "sed -n 1,20p a.txt", {"run": "head", "flags": ["-n*", "-q"]}, {"run": "git diff *", "flags": ["--stat", "--output=/tmp/x"]},
		{"run": "env *", "wraps": true}, {"run": "sudo *", "wraps": true}, {"run": "xargs *", "wraps": true}, {"run": "nice *", "wraps": true},
		{"run": "timeout *", "wraps": true}, {"run": "exec *", "wraps": true}, {"run": "time *", "wraps": true}],
	"deny": ["rm", "git push"]
}`

func settings(t testing.TB, text string) allowlist.Settings {
	t.Helper()
	s, err := allowlist.Section.From(engine.AgentSpec{Sections: map[string]inference.JSON{allowlist.Name: inference.JSON(text)}})
	require.NoError(t, err)
	return s
}

// Lines of which all that they run is on the list.
var approved = []string{
	"ls", "ls -la /tmp", " ls  ", "ls;", "ls\nls", "'ls' -l", `l"s"`, `l\s`, "ls 'a b' \"c d\"", `ls a\ b`, "ls # all of it",
	"ls && git status || echo no", "ls | wc -l | sort -rn", "(ls; ls)", "{ ls; }", "! ls",
	"if ls a; then echo yes; elif true; then ls; else echo no; fi", "for f in a b *.go; do wc -l \"$f\"; done", "while true; do ls; done",
	"until ls; do true; done", "case a in a|b) ls;; *) echo;; esac", "for f in a; do echo $f ${f}; done",
	"ls 2>&1", "ls >/dev/null 2>&1", "ls 2>/dev/null", "ls </dev/null", "ls >&2", "ls 2>&-", "ls >>/dev/null", "ls >|/dev/null",
	"wc -l <<'E'\n$(rm x)\nE", "wc -l <<E\nplain\nE", "git log --oneline -n 5 -p", "git log --format=%H HEAD~3", "git log HEAD^",
	"go test ./...", "find . -name '*.go' -type f", `find . \( -name a -o -name b \)`, "find . ! -name x", "sort -k2 -t,", "tar tf a.tar", "tar -tvf a.tar",
	"cat docs/a", `cat "docs/a b"`, "ls *.go", "ls ./*", "ls ~", "ls $x", `ls "$x"`, "echo a{b,c}", "find a\"$x\"", "find a*", "find ~/a", "echo '$(rm x)' '`rm`' '>x'", `echo "a\$b \"c\""`, `echo "x$"`,
	"[ -f a ]", "[ a = b ]", "test a = 'b c'", "test -d a", "./run.sh", "sed -n 1,20p a.txt", "head -n5 -q", "git diff a --stat", "git diff --output=/tmp/x",
	"env ls -l", "env file=a ls", "sudo ls", "ls | xargs echo", "ls | xargs ls -l", "nice -n 5 ls", "nice ls", "timeout 5s ls", "exec ls", "time ls", "env nice ls",
	"file=a ls", "i=1; ls $i",
}

// Lines that may run or change something else.
var unsure = []string{
	"", " ", "# ls", ";", "file=a", "ls; cat /etc/passwd", "ls && reboot", "ls | sh", "ls || (ls; reboot)", "{ reboot; }", "! reboot", "lsof", "ls-l", "/bin/ls", "./ls", "LS",
	"if reboot; then ls; fi", "if ls; then reboot; fi", "if ls; then ls; else reboot; fi", "for f in a; do reboot; done", "while ls; do reboot; done",
	"case a in a) reboot;; esac", "f() { ls; }", "ls() { reboot; }", "function ls { ls; }; ls", "ls() { ls | ls; }; ls",
	"ls $(reboot)", "ls `reboot`", `ls "$(reboot)"`, "ls \"`reboot`\"", "ls <(reboot)", "ls >(reboot)", "$(echo ls)", "`echo ls`", "for f in $(reboot); do ls; done",
	"case $(reboot) in a) ls;; esac", "ls ${x:-$(reboot)}", "ls ${x:=y}", "ls ${x@P}", "ls ${!x}", "ls ${x[1]}", "ls ${x:1}", "ls ${x/a/b}", "ls ${#x}",
	"ls $((1+1))", "ls $[1+1]", "((x=1))", "let x=1", "[[ -f a ]]", "[ -v 'a[$(reboot)]' ]", "test 'a[$(reboot)]' -eq 1", "[ -f \"$x\" ]",
	"eval ls", "source a", ". a", "trap ls EXIT", "alias ls=reboot", "export PATH=/x", "declare x=1", "local x=1", "readonly x", "unset PATH", "set -x", "read x", "builtin ls",
	"exec reboot", "exec", "command ls", "sudo reboot", "sudo -u x ls", "env reboot", "env -i ls", "env -S 'ls -l'", "env", "env PATH=/x ls", "env FOO=1 ls", "env $x ls",
	"xargs reboot", "ls | xargs git log", "ls | xargs -I{} ls {}", "ls | xargs head", "xargs", "nice -n -5 ls", "nice -n $x ls", "timeout 5 reboot", "timeout -s KILL 5 ls", "timeout ls",
	"ls > a", "ls >> a", "ls >| a", "ls < a", "ls <> a", "ls <>/dev/null", "ls &> a", "ls &>> a", "ls >& a", "ls 2> a", "> a", "ls > $x", "ls > /dev/null/../tcp/1/2", "ls < /dev/tcp/a/1",
	"ls >&$x", "ls {x}>/dev/null", "ls <<< a", "wc <<E\n$(reboot)\nE", "wc <<E\n`reboot`\nE", "wc <<E\n$x\nE", "ls <<E\n${x@P}\nE", "wc <<'a b'\nx\na b", "wc <<E", "wc <<E\nx\nE \nreboot", "wc <<\"\"\nx\n\nreboot", "wc <<E$x\na\nE$x", "find =ls", "[ =ls ]",
	"PATH=/x ls", "LD_PRELOAD=/x ls", "IFS=x ls", "IFS=x", "x=1 ls", "file=$(reboot)", "file=$x ls", "file+=a", "file=(a b)", "for PATH in /x; do ls; done", "for path in /x; do ls; done",
	"ls > /dev/null$x", "ls > /dev/null\"$x\"", "ls >&2$x", "wc <<E$x\na\nE", "ls$x", "git status$x", "file=a$x ls", "true$x", "sed$x -n 1,20p a.txt", "head -n5$x",
	"$x", "$x -l", "l$x", "ls*", "l?", "{ls,reboot}", "~/ls", "=ls", "\"$x\" a", "l{s,x}",
	"ls &", "ls & ls", "ls |& wc", "coproc ls", "ls &| wc", "ls &!", "select f in a; do ls; done", "for ((i=0;i<1;i++)); do ls; done", "for f (a b) ls", "foreach f (a) ls; end", "repeat 3 ls",
	"ls $'a'", "$'ls'", "ls $\"a\"", "l\\\ns", "ls \\\n-l", "ls\u00a0-l", "ls\u2003-l", "ls\u200b", "ls\x00-l", "ls\r", "ls\x1b[2K", "ls \xff", "ls \u202e",
	"ls !$", "ls !!", "!ls", "ls \"!x\"", "ls *(e:reboot:)", "ls ?(a|b)", "ls @(a)", "ls <1-9>", "ls =(reboot)", "noglob ls", "- ls", "ls ${(e)x}", "ls ${~x}",
	"ls )", "ls (", "if ls", "ls 'a", "ls \"a", "ls &&", "| ls", "ls ;; ls", "fi", "ls }",
	"git", "git push", "git -c a=b status", "git -c core.pager=reboot log", "git --exec-path=/x log", "git -C /x status", "git status -s", "git log --output=x", "git log --outp=x",
	"git log --ext-diff", "git log $x", "git log \"$x\"", "git log *", "git log {--output=x,y}", "git log ~x/$y --o=z", "git log-x",
	"git diff --output=x", "git diff --name-only", "git diff $x", "git  diff --stat=1", "go test ./... -exec reboot", "go test ./a", "go test",
	"find . -exec reboot ;", "find . -execdir reboot +", "find . -delete", "find . -ok reboot \\;", "find . -fprintf a b", "find -- -delete", "find $x", "find a\"$@\"", "find a$x", `find \*`, "find . -e'xec' reboot ;", "find *",
	"sort -o a", "sort -ro a", "sort --output=a", "sort --out a", "sort --compress-prog=reboot", "tar xf a --checkpoint-action=exec=reboot", "tar --checkpoint-act=x", "tar xIf reboot a",
	"tar -xIf a", "tar xf a --to-command reboot", "tar $x",
	"cat", "cat docs/../a", "cat docs/..", "cat docs/a/b", "cat docs/a docs/b", "cat -n docs/a", "cat docs/*", "cat docs/$x", "cat etc/a",
	"sed -n 1,20p b.txt", "sed -n 1,20p a.txt b", "head -n5 a", "head -c5", "head $x", "true x", "./run.sh x", "../run.sh",
	"ls; >/dev/null", "ls; </dev/null", "ls | </dev/null", "file=a </dev/null; ls", "ls >&3", "ls <&3", "ls 3>&1", "ls 3>/dev/null", "ls 9>&-",
	"ls \ufffd", "ls \u3164", "ls \u115f", "ls \u2800", "ls a\ufe0f", "ls \u034f",
	strings.Repeat("ls;", 4000),
}

// Capability G7. The shell allowlist approves lines of which every command is allowed,
// and is not sure about anything that may run or write something else.
func TestLines(t *testing.T) {
	s := settings(t, list)
	for _, line := range approved {
		verdict, why := s.Judge(line)
		require.Equal(t, allowlist.Approved, verdict, "%q: %s", line, why)
	}
	s.Deny = nil
	for _, line := range unsure {
		verdict, why := s.Judge(line)
		require.Equal(t, allowlist.Unsure, verdict, "%.200q: %s", line, why)
		require.NotEmpty(t, why)
	}
	_, why := s.Judge("ls | wc -l && ls")
	require.Equal(t, `allowed by "ls *", "wc *"`, why)
}

// What is denied is blocked wherever it can be seen.
func TestDenied(t *testing.T) {
	s := settings(t, list)
	for _, line := range []string{
		"rm", "rm -rf /", "ls; rm x", "ls | rm x", "/bin/rm x", "'r'm x", `r\m`, "ls $(rm x)", "f() { rm x; }", "if ls; then rm x; fi", "sudo rm x", "sudo -u a rm x",
		"env A=b rm x", "xargs rm", "sh -c 'rm x'", "bash -c 'ls && rm x'", "eval 'rm x'", "eval \"eval 'rm x'\"", "find . -exec rm {} +", "A=b rm x", "rm x &", "ls <(rm x)",
		"git push", "git push origin main", "git -C /x push", "git --no-pager -c a=b push -f", "export X=$(rm x)", "rm \"$x\"", "[[ -f $(rm x) ]]",
	} {
		verdict, why := s.Judge(line)
		require.Equal(t, allowlist.Denied, verdict, "%q: %s", line, why)
	}
	for _, line := range []string{"echo rm", "ls rm", "git log push", "git status", "echo 'rm x'"} {
		verdict, why := s.Judge(line)
		require.NotEqual(t, allowlist.Denied, verdict, "%q: %s", line, why)
	}
	many := "git " + strings.Repeat("-a ", 2000) + "push"
	verdict, _ := s.Judge(many)
	require.Equal(t, allowlist.Denied, verdict)
}

// A line that is as long as can be is judged in little time, whatever is denied.
func TestLongLines(t *testing.T) {
	s := allowlist.Settings{Allow: allowlist.Rules("ls *")}
	for i := range 20 {
		s.Deny = append(s.Deny, allowlist.Rules(fmt.Sprintf("git push%d", i))...)
	}
	for _, line := range []string{
		"sudo " + strings.Repeat("a ", 4000), "sudo " + strings.Repeat("git ", 2000), "sudo " + strings.Repeat("git -a ", 1150), "sh -c '" + strings.Repeat("sh a ", 1600) + "'",
		strings.Repeat("(", 4000) + strings.Repeat(")", 4000), strings.Repeat("$((", 2700), strings.Repeat("\"$(", 2700), strings.Repeat("`", 8000), "ls" + strings.Repeat("|ls", 2700),
	} {
		start := time.Now()
		_, why := s.Judge(line)
		require.NotEmpty(t, why)
		require.Less(t, time.Since(start), 8*time.Second, "%.40s", line)
	}
}

// What is known of a program holds whatever path it is called by, and for any version.
func TestPrograms(t *testing.T) {
	s := settings(t, `{"allow":["/usr/bin/git log *","/bin/sort-9.1 *",{"run":"/usr/bin/env *","wraps":true},"ls *","go test *","split *","curl *"]}`)
	for _, line := range []string{"/usr/bin/git log -p", "/bin/sort-9.1 -r a", "/usr/bin/env ls", "go test -test.v", "split -b 9 a", "curl -s a"} {
		verdict, why := s.Judge(line)
		require.Equal(t, allowlist.Approved, verdict, "%q: %s", line, why)
	}
	for _, line := range []string{
		"/usr/bin/git log --output=x", "/usr/bin/git log $x", "/bin/sort-9.1 -o x a", "/usr/bin/env reboot", "/usr/bin/env PATH=/x ls",
		"go test -test.cpuprofile=x", "split --filter=reboot a", "curl -w %output{x} a",
	} {
		verdict, _ := s.Judge(line)
		require.Equal(t, allowlist.Unsure, verdict, line)
	}
	s = settings(t, `{"deny":["rm"]}`)
	for _, line := range []string{"/usr/bin/bash5 -c 'rm x'", "stdbuf -o0 rm x", "/usr/bin/sudo rm x"} {
		verdict, _ := s.Judge(line)
		require.Equal(t, allowlist.Denied, verdict, line)
	}
}

func TestFaultySettings(t *testing.T) {
	config, _ := enginetest.Config(t, allowlist.New())
	eng := enginetest.Engine(t, config)
	for text, says := range map[string]string{
		`{"allow":[""]}`:                          "names no command",
		`{"allow":["*"]}`:                         "names no command",
		`{"deny":["l* x"]}`:                       "names no command",
		`{"allow":["ls ["]}`:                      "malformed pattern",
		`{"allow":["git * status"]}`:              "not its last word",
		`{"allow":[{"run":"ls","flags":["l"]}]}`:  "has no dash",
		`{"allow":[{"run":"ls","flags":["*"]}]}`:  "not its last word",
		`{"allow":[{"run":"ls","flag":["-l"]}]}`:  "flag",
		`{"allow":["eval *"]}`:                    "can run or change anything",
		`{"allow":["sudo *"]}`:                    `write {\"run\": \"sudo *\", \"wraps\": true}`,
		`{"allow":["xargs ls"]}`:                  "runs another one",
		`{"allow":[{"run":"ls *","wraps":true}]}`: "wraps nothing that is known",
		`{"allow":["sed *"]}`:                     "must have all its arguments",
		`{"allow":["python3"]}`:                   "must have all its arguments",
		`{"allow":["make [a-z]*"]}`:               "must have all its arguments",
		`{"allow":["/bin/sh *"]}`:                 "must have all its arguments",
		`{"allow":["python3.12 *"]}`:              "must have all its arguments",
		`{"allow":["/usr/bin/env *"]}`:            `write {\"run\": \"/usr/bin/env *\", \"wraps\": true}`,
		`{"allow":["/x/eval *"]}`:                 "can run or change anything",
		`{"allow":["git *"]}`:                     "must name what git is to do",
		`{"allow":["git --no-pager *"]}`:          "must name what git is to do",
		`{"allow":["docker p?"]}`:                 "must name what docker is to do",
		`{"allow":["git config *"]}`:              "must have all its arguments",
		`{"allow":["/bin/git submodule *"]}`:      "must have all its arguments",
		`{"deny":[{"run":"ls","wraps":true}]}`:    "has no flags and wraps nothing",
		`{"variables":["PATH"]}`:                  "decides what commands mean",
		`{"variables":["fpath"]}`:                 "decides what commands mean",
		`{"variables":["LD_PRELOAD"]}`:            "decides what commands mean",
		`{"tools":[{"tool":"shell"}]}`:            "no argument",
		`{"alow":[]}`:                             "alow",
	} {
		err := eng.Check(engine.AgentSpec{ID: "a", Sections: map[string]inference.JSON{allowlist.Name: inference.JSON(text)}})
		require.ErrorIs(t, err, engine.ErrSpec, text)
		require.ErrorContains(t, err, strings.ReplaceAll(says, `\"`, `"`), text)
	}
}

// world runs calls of a shell one after the other, behind the plugins given.
func world(t *testing.T, sections map[string]inference.JSON, resolver gate.Resolver, plugins []engine.Plugin, calls ...inference.JSON) (ran []string, outcomes []inference.ToolResult, rec *enginetest.Recorder) {
	t.Helper()
	var answers []enginetest.Answer
	for i, args := range calls {
		answers = append(answers, enginetest.Call(fmt.Sprintf("c%d", i), "shell", args))
	}
	shell := engine.NewPlugin("shell", func(r *engine.Registrar) error {
		r.Tool(loose{&ran})
		return nil
	})
	config, rec := enginetest.Config(t, append(plugins, shell)...)
	config.Schemas = confirm.Schemas(nil)
	config.Resolver = resolver
	config.Model = enginetest.NewScript(append(answers, enginetest.Say("done"))...)
	_, err := enginetest.Engine(t, config).Run(t.Context(), engine.AgentSpec{ID: "a", Sections: sections}, engine.Prompt("go"))
	require.NoError(t, err)
	for _, e := range enginetest.Select[engine.ToolFinished](rec.Events()) {
		outcomes = append(outcomes, e.Result)
	}
	return ran, outcomes, rec
}

// loose is a tool that takes its arguments as encoding/json does: members in any case,
// and the last of several.
type loose struct{ ran *[]string }

func (loose) Spec() inference.ToolSpec { return inference.ToolSpec{Name: "shell", Kind: "exec"} }

func (l loose) Call(_ context.Context, pc *phase.Context) (engine.Output, error) {
	var in struct {
		Command string `json:"command"`
	}
	if err := json.Unmarshal([]byte(pc.Call().Args), &in); err != nil {
		return engine.Output{}, err
	}
	*l.ran = append(*l.ran, in.Command)
	return engine.Text("ok"), nil
}

// The gate approves with the rule's name, abstains with why, and blocks what is denied. A
// call with more arguments than are known, or a line that is there twice, is not approved.
func TestGate(t *testing.T) {
	calls := map[inference.JSON]string{
		`{"command":"ls -l"}`:                  `approve allowed by "ls *"`,
		`{"command":"ls","timeout":5}`:         `approve allowed by "ls *"`,
		`{"command":"ls","timeout_seconds":5}`: `approve allowed by "ls *"`,
		`{"command":"reboot"}`:                 `abstain not approved: no rule allows reboot with these arguments`,
		`{"command":"ls; rm x"}`:               `block the command line is denied: it runs what the rule "rm" denies`,
		`{"command":"ls","env":{"PATH":"/x"}}`: `abstain not approved: the argument env may change what the command line does`,
		`{"command":"ls","Command":"reboot"}`:  `abstain not approved: the argument command is no text, is misspelt or is there twice`,
		`{"Command":"ls"}`:                     `abstain not approved: the argument command is no text, is misspelt or is there twice`,
		`{"command":"reboot","command":"ls"}`:  `abstain not approved: the argument command is no text, is misspelt or is there twice`,
		`{"command":"ls","COMMAND":"rm x"}`:    `block the command line is denied: it runs what the rule "rm" denies`,
		`{"timeout":5}`:                        `abstain not approved: there is no argument command`,
	}
	for args, want := range calls {
		_, _, rec := world(t, map[string]inference.JSON{allowlist.Name: inference.JSON(list)}, nil, []engine.Plugin{allowlist.New()}, args)
		votes := enginetest.Select[engine.GateVoted](rec.Events())
		require.Len(t, votes, 1)
		require.Equal(t, want, fmt.Sprintf("%s %s", votes[0].Decision, votes[0].Reason), args)
	}
}

// Capability G5. Reports 3 and 11. allowlist approves, permission denies, confirm asks about
// the rest: in every order of the plugins, with every gate consulted for every call, and a
// guard's block is a block also for what the list approves.
func TestComposition(t *testing.T) {
	guard := engine.NewPlugin("guard", func(r *engine.Registrar) error {
		r.Gate(gate.Func(func(_ context.Context, pc *phase.Context) (gate.Decision, error) {
			if strings.Contains(string(pc.Call().Args), "/etc") {
				return gate.Block("not there"), nil
			}
			return gate.Abstain(), nil
		}))
		return nil
	})
	sections := map[string]inference.JSON{
		allowlist.Name:  `{"allow":["ls *"]}`,
		permission.Name: `{"deny":[{"tool":"shell","args":{"command":"**/secrets/**"}},{"tool":"shell","args":{"command":"*wipe*"}}],"default":"abstain"}`,
	}
	plugins := []engine.Plugin{allowlist.New(), permission.New(), confirm.New(confirm.Options{}), guard}
	for _, order := range [][]int{
		{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 1, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}, {0, 3, 2, 1}, {1, 0, 2, 3}, {1, 0, 3, 2}, {1, 2, 0, 3}, {1, 2, 3, 0}, {1, 3, 0, 2}, {1, 3, 2, 0},
		{2, 0, 1, 3}, {2, 0, 3, 1}, {2, 1, 0, 3}, {2, 1, 3, 0}, {2, 3, 0, 1}, {2, 3, 1, 0}, {3, 0, 1, 2}, {3, 0, 2, 1}, {3, 1, 0, 2}, {3, 1, 2, 0}, {3, 2, 0, 1}, {3, 2, 1, 0},
	} {
		var ordered []engine.Plugin
		for _, i := range order {
			ordered = append(ordered, plugins[i])
		}
		var asked []string
		who := gate.ResolverFunc(func(_ context.Context, ticket gate.Ticket) (phase.Answer, error) {
			asked = append(asked, ticket.Plugin+" "+ticket.Call)
			if ticket.Call == "c4" { // the edit is judged by all of them again
				return confirm.Answer{Choice: confirm.Edit, Args: `{"command":"ls /etc"}`}.Reply()
			}
			return phase.Answer{Approved: true}, nil
		})
		ran, results, rec := world(t, sections, who, ordered,
			`{"command":"ls -l"}`, `{"command":"ls /etc"}`, `{"command":"ls wipe"}`, `{"command":"make it"}`, `{"command":"make them"}`)
		require.Equal(t, []string{"ls -l", "make it"}, ran)
		require.Equal(t, []string{"confirm c3", "confirm c4"}, asked)
		require.Equal(t, "blocked: not there", results[1].Content)
		require.Contains(t, results[2].Content, "blocked: shell is denied by the rule")
		require.Equal(t, "blocked: not there", results[4].Content)
		votes := map[string]int{}
		for _, v := range enginetest.Select[engine.GateVoted](rec.Events()) {
			votes[v.Call+" "+v.Plugin]++
		}
		require.Len(t, votes, 5*4, "every gate is consulted for every call")
	}
}
