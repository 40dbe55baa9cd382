// Package allowlist is a plugin that approves command lines of a shell when all that
// they run is on a list, so that nobody needs to be asked. It parses the line; nothing is
// compared by prefix.
//
//	"allowlist": {
//	  "allow": ["ls *", "git status", "git log *", "go test ./...",
//	            {"run": "head", "flags": ["-n*"]}, {"run": "env *", "wraps": true}],
//	  "deny":  ["git push", "rm"],
//	  "tools": [{"tool": "shell", "argument": "command", "others": ["timeout_seconds"]}]
//	}
//
// Register it with [New]. It has no state. Where it is not sure it abstains, and never
// blocks but for what "deny" lists; so the other gates are asked in any case, and one that
// blocks or suspends is not outvoted. For who asks a person about the rest see
// plugins/confirm.
//
// # What is approved
//
// Every simple command of the line must be allowed: in lists and pipelines, behind && and
// ||, in subshells and groups, in the conditions and bodies of if, for, while and case. A
// rule gives the command's name and its first arguments; a last * stands for any more,
// and "flags" lists those arguments with a dash that may follow.
//
// Not approved is whatever may run or change something else: substitutions of commands and
// processes, arithmetic, expansions but $name, functions, commands in the background,
// redirections to and from files (/dev/null and the descriptors 0 to 2 are fine), here-documents with
// expansions, assignments to variables that "variables" does not list, names that the
// shell works out, quoting like $'...', and any text that shows differently from what it is.
// An argument that expands counts as any words whatever: only a rule with * and without
// "flags" allows it, and not for commands with flags that are dangerous.
//
// The line is read as POSIX shell, bash, mksh and zsh, and must be approved as each. That
// says nothing of shells of other families, nor of an interactive one with aliases and a
// history.
//
// # What a command does with its arguments
//
// Some flags make a harmless command run or write something, such as find -exec, git
// --upload-pack or sort -o. For the usual commands there is a table (danger.go), which
// cannot be complete: a rule that lists its flags is safer than a *. Commands whose
// operands can be programs, such as sed or make, need a rule with all arguments, and those
// whose first operand says what they do, such as git, one that names it. Those that
// can run anything, such as eval, are refused. Commands that run another one, such as env,
// sudo and xargs, need a rule with "wraps", and what they run must be allowed too. The
// programs themselves, and what they read, are the list's to trust. A rule that allows cd
// makes every relative path of the others, ./run.sh say, one of any directory.
//
// A call is looked at only if it has no arguments beside the line than those in "others".
//
// # What is denied
//
// "deny" blocks lines in which a command is seen anywhere, with any further arguments and
// with flags between its words. It is no sandbox: what cannot be seen is not approved, and
// that is all.
package allowlist
