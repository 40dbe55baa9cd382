package allowlist

import (
	"slices"
	"strings"
)

// Three tables say what the shape of a rule cannot: which commands do more than their
// name tells. They cannot be complete. A rule that lists its flags, or whose words are all
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
)

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
	"tree":   {short: "oR"},
	"zip":    {long: []string{"unzip-command", "test"}, short: "T"},
	"date":   {long: []string{"set"}, short: "s"},
	"file":   {long: []string{"compile", "uncompress"}, short: "CzZ"},
	"curl":   {long: []string{"output", "output-dir", "remote-name", "remote-name-all", "config", "upload-file", "dump-header", "cookie-jar", "trace", "trace-ascii", "stderr", "libcurl", "etag-save", "hsts", "alt-svc"}, short: "oOKTDcJ"},
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

// risky reports whether a command has flags in the table.
func risky(command string) bool {
	f := dangerous[command]
	return len(f.long)+len(f.short)+len(f.single) > 0
}

// dangerousFlag reports whether an argument is, or has in it, a flag of the table.
func dangerousFlag(command, arg string) bool {
	f := dangerous[command]
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
	if slices.Contains(f.single, name) {
		return true
	}
	if !strings.HasPrefix(arg, "--") {
		return strings.ContainsAny(arg, f.short)
	}
	return name != "" && slices.ContainsFunc(f.long, func(long string) bool { return strings.HasPrefix(long, name) })
}
