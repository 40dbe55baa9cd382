package allowlist

import (
	"path"
	"slices"
	"strings"
)

// Tables say what the shape of a rule cannot: which commands do more than their name
// tells. They go by program, and cannot be complete. A rule that lists its flags, or whose words are all
// fixed, does not depend on them.

// never are commands that no rule may name: they run or change something that is not
// there to be looked at when the line is judged.
var never = set(
	"eval", "source", ".", "trap", "builtin", "enable", "hash", "unhash", "rehash", "fc", "history", "bind", "complete",
	"alias", "unalias", "export", "declare", "typeset", "local", "readonly", "nameref", "integer", "float", "let", "set", "unset",
	"shopt", "setopt", "unsetopt", "emulate", "zmodload", "autoload", "functions", "sched", "getopts", "read", "mapfile", "readarray",
	"coproc", "noglob", "nocorrect", "-", "repeat", "nohup", "setsid", "parallel", "su", "doas", "watch", "chroot", "unshare", "strace",
)

// wrappers run the command that their arguments are. A rule needs "wraps" for them, and
// then the inner command must be allowed itself.
var wrappers = set("env", "nice", "timeout", "time", "command", "exec", "sudo", "xargs")

// exact are commands whose operands are programs, or are evaluated, or name what is
// written. Every word of a rule for them must be fixed.
var exact = set(
	"sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "busybox", "sed", "awk", "gawk", "mawk", "nawk", "perl", "python", "python3",
	"ruby", "node", "deno", "bun", "php", "lua", "tclsh", "make", "gmake", "npx", "vi", "vim", "nvim", "emacs", "ed", "ex", "nano",
	"less", "more", "man", "ssh", "scp", "sftp", "rsync", "uniq", "printf", "print", "exit", "return", "break", "continue", "shift",
	"ulimit", "umask", "jobs", "find2perl", "script", "gdb", "dc", "bc", "m4", "install", "dd", "tee", "xxd",
	"ash", "rbash", "toybox", "pwsh", "powershell", "expect", "osascript", "java", "R", "Rscript", "julia", "irb", "ghci", "sqlite3", "psql", "mysql",
	"stdbuf", "ionice", "taskset", "chrt", "flock", "runuser", "pkexec", "systemd-run", "nsenter", "ltrace", "perf", "valgrind", "tmux", "screen",
	"entr", "at", "batch", "crontab", "fakeroot",
	"git config", "git submodule", "git bisect", "git filter-branch", "git for-each-repo", "go tool",
)

// verbs are commands of which the first operand says what they do: for each of these
// there is one that runs or changes something.
var verbs = set("git", "go", "docker", "podman", "kubectl", "npm", "pnpm", "yarn", "cargo", "pip", "gh", "apt", "brew", "systemctl")

// flags are those of one command that run or write something else.
type flags struct {
	long   []string // without dashes; any abbreviation of one counts
	short  string   // letters, also in a cluster
	single []string // with one dash or two, to the letter: -exec
	bare   bool     // letters may come without a dash: tar xf
}

var dangerous = map[string]flags{
	"git": {
		long: []string{"upload-pack", "receive-pack", "exec", "config", "config-env", "exec-path", "git-dir", "work-tree", "output",
			"output-directory", "ext-diff", "textconv", "open-files-in-pager", "template", "extcmd", "tool", "edit", "web",
			"separate-git-dir", "gpg-sign", "show-signature", "paginate"},
		short: "cOuxoeS",
	},
	"tar": {
		long: []string{"checkpoint-action", "to-command", "use-compress-program", "info-script", "new-volume-script", "rsh-command",
			"rmt-command", "index-file", "volno-file"},
		short: "IF", bare: true,
	},
	"find": {single: []string{"exec", "execdir", "ok", "okdir", "delete", "fprint", "fprint0", "fprintf", "fls"}},
	"fd":   {long: []string{"exec", "exec-batch"}, short: "xX"},
	"rg":   {long: []string{"pre", "hostname-bin", "search-zip"}, short: "z"},
	"go": {single: []string{"exec", "toolexec", "vettool", "o", "ldflags", "gcflags", "asmflags", "gccgoflags", "overlay", "modfile", "C",
		"coverprofile", "cpuprofile", "memprofile", "blockprofile", "mutexprofile", "trace", "outputdir", "w", "fix", "u"}},
	"gofmt":  {single: []string{"w", "cpuprofile"}},
	"sort":   {long: []string{"output", "compress-program", "temporary-directory"}, short: "oT"},
	"split":  {long: []string{"filter"}},
	"shuf":   {long: []string{"output"}, short: "o"},
	"tree":   {short: "oR"},
	"zip":    {long: []string{"unzip-command", "test"}, short: "T"},
	"date":   {long: []string{"set"}, short: "s"},
	"file":   {long: []string{"compile", "uncompress"}, short: "CzZ"},
	"curl":   {long: []string{"output", "output-dir", "remote-name", "remote-name-all", "config", "upload-file", "dump-header", "cookie-jar", "trace", "trace-ascii", "stderr", "libcurl", "etag-save", "hsts", "alt-svc", "write-out", "ssl-sessions"}, short: "oOKTDcJw"},
	"wget":   {long: []string{"output-document", "output-file", "append-output", "use-askpass", "execute", "config", "directory-prefix", "post-file", "body-file", "save-cookies", "warc-file"}, short: "OoaePi"},
	"test":   {single: testFlags},
	"[":      {single: testFlags},
	"docker": {long: []string{"volume", "mount", "privileged", "entrypoint"}, short: "v"},
	"jq":     {long: []string{"from-file"}, short: "fL"},
	"diff":   {long: []string{"output"}},
}

// testFlags evaluate a word as an expression, in some shells with commands in it.
var testFlags = []string{"v", "R", "t", "eq", "ne", "lt", "le", "gt", "ge"}

func set(names ...string) map[string]bool {
	s := map[string]bool{}
	for _, n := range names {
		s[n] = true
	}
	return s
}

// program returns the name of a command that the tables know it by: without folders, and
// without the version that may follow, as in /usr/bin/python3.12.
func program(command string) string {
	name := strings.TrimSuffix(path.Base(command), ".exe")
	if _, flagged := dangerous[name]; flagged || never[name] || wrappers[name] || exact[name] {
		return name
	}
	if bare := strings.TrimRight(name, "0123456789.-"); bare != "" {
		return bare
	}
	return name
}

// risky reports whether a command has flags in the table.
func risky(command string) bool {
	f := dangerous[program(command)]
	return len(f.long)+len(f.short)+len(f.single) > 0
}

// dangerousFlag reports whether an argument is, or has in it, a flag of the table.
func dangerousFlag(command, arg string) bool {
	f := dangerous[program(command)]
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
	if slices.Contains(f.single, strings.TrimPrefix(name, "test.")) { // go test takes them by two names
		return true
	}
	if !strings.HasPrefix(arg, "--") {
		return strings.ContainsAny(arg, f.short)
	}
	return name != "" && slices.ContainsFunc(f.long, func(long string) bool { return strings.HasPrefix(long, name) })
}
