// Package permission is a plugin that decides by rules which tool calls may run:
// at once, after a person said yes, or not at all.
//
// The rules are the section "permission" of an agent spec:
//
//	"permission": {
//	  "allow": ["kind:read"],
//	  "ask":   ["write_*"],
//	  "deny":  ["exec_*", "kind:net"],
//	  "default": "ask"
//	}
//
// A rule is a tool's name or a pattern of names as path.Match takes it, or the
// same for the tool's kind behind "kind:". Of the rules that fit a call, deny
// goes before ask and ask before allow; "default" is for calls that none fits.
//
// A question shows the call's arguments and is bound to exactly these. Someone
// who answers with the value "always" is not asked about that tool again during
// the run. When nobody can be asked the answer is no, unless "unattended" says
// otherwise.
package permission
