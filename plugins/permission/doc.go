// Package permission is a plugin that decides by rules which tool calls may run:
// at once, after a person said yes, or not at all.
//
// The rules are the section "permission" of an agent spec:
//
//	"permission": {
//	  "allow": ["kind:read", {"tool": "write_file", "args": {"path": "docs/**"}}],
//	  "ask":   ["write_*"],
//	  "deny":  ["exec_*", "kind:net", {"tool": "*", "args": {"path": "secrets/**"}}],
//	  "default": "ask"
//	}
//
// A rule is a tool's name or a pattern of names as path.Match takes it, or the
// same for the tool's kind behind "kind:"; or an object with such a "tool" and
// patterns of arguments in "args", all of which must fit. Of the rules that fit a
// call, deny goes before ask and ask before allow; "default" is for calls that
// none fits.
//
// # Arguments
//
// The pattern of an argument is matched element by element between slashes, after
// dots and doubled slashes are resolved on both sides: a/../secrets/x is secrets/x.
// Each element is a pattern as path.Match takes it, and ** stands for any number of
// elements. Of a list every text counts, of a number or a truth value its JSON.
//
// A rule that denies or asks fits if any way to read the argument does: with a
// backslash as a slash, without the space around it, with / as the tool's own root, in
// upper or lower case, its name in any case, the first or the last of several of one
// name. A rule that allows fits only if all ways do; its wildcards stand for no ".." and
// for no leading slash. With "root", the absolute path that the tools work in, absolute
// paths below it count as relative ones and symbolic links are followed, as the file
// system has them when the call is judged; a link that leads nowhere, and what is longer
// than any path, fits any rule that denies or asks, and none that allows.
//
// What is hidden in a text, such as a command line, these patterns do not see, nor what
// a tool reaches from an argument: a search of the folder above secrets fits no rule
// about secrets/**. Keep such folders from the tool itself, as plugins/files does with
// Options.Exclude. Short names and streams of Windows, and letters that a file system
// takes for one in several Unicode forms, are not resolved.
//
// # Questions
//
// A question shows the call's arguments as they are written, long texts cut, and is
// bound to exactly these. Someone who answers with the value "always" is not asked again during the run about what the
// question says that it covers: calls of the tool that the same rule asks about.
// When nobody can be asked the answer is no, unless "unattended" says otherwise.
//
// # Permission, confirm, allowlist
//
// Three plugins decide about calls, and compose since gates do: what one blocks is
// blocked whatever the others say, and what one approves no other asks about.
//
//   - permission is policy that is known in advance, by tools and their arguments. Take
//     it to deny for good, and to allow without a question.
//   - contrib/plugins/allowlist approves command lines of a shell, which it parses.
//     Where it is not sure it has no opinion.
//   - plugins/confirm asks a person about what nobody approved, with previews, edits and
//     approvals for later. It is the end of the chain.
//
// With confirm behind it, give this plugin "default": "abstain", so that it leaves the
// calls that no rule fits to the others. When both ask about a call, the one registered
// first puts the question, and a yes to it is enough.
package permission
