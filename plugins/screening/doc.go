// Package screening is a plugin that looks for prompt injection in tool results: text
// that speaks to the model instead of answering its call.
//
//	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{screening.New(screening.Options{})}, Model: m})
//
// The section "screening" of an agent spec says what becomes of a result in which
// something was found, and for which tools; the first entry of "tools" that matches
// counts, and "mode" for all others:
//
//		"screening": {
//		  "mode": "warn",
//		  "tools": [{"match": "fetch_*", "mode": "block"}, {"match": "read_file", "mode": "off"}],
//		  "patterns": [{"name": "payment", "regexp": "(?i)wire .{1,40} to account", "tools": ["fetch_*"]}],
//		  "without": ["role-play"]
//		}
//
//	  - off: the result is not looked at.
//	  - warn, which holds without a section: a note before the content tells the model not
//	    to follow it; the content stays.
//	  - block: content and details are replaced and the result becomes an error, so that
//	    the model never sees the text. What is found in the details alone replaces those
//	    alone, since models do not see them.
//
// Rules lists what is built in and "without" takes rules of it away. Most are phrases of
// words that may have some others in between, such as "ignore", up to six words,
// "previous", up to three words, "instructions". Own patterns are regular expressions of
// package regexp, matched against the text as it is and in its plain form.
//
// # What is covered
//
// Every result of every call passes AfterToolExecute: of tools that succeeded, failed,
// panicked or timed out, of calls that a gate blocked, of results that a gate, a person
// or a delegate gave, and of tools that were added for one run. Results are one content
// and one JSON text of details, whatever a tool made them from. The strings in details
// are read as JSON writes them, names included.
//
// Results are screened twice: at FirstTier, where no hook of a later tier has seen them
// yet, so that what others make of a blocked result is made of the replacement; and at
// LastTier, since a formatter may bring a text to light that was hidden before. A hook
// that stops the phase keeps the second look from happening, and the first only if it
// is of a still lower tier. One that fails the phase ends the run, and the engine hides
// the result. Not covered are actions that run after the hooks, what a tool adds to the
// history by itself, and what a delegate answers that was sent off to the background,
// which is no result but context that is added.
//
// # Limits
//
// Rules compare the plain form of a text: small letters; one space for all white space;
// without zero-width and other invisible characters, colours of terminals, accents,
// emphasis of Markdown, and quotes; with characters of Unicode tags, full-width, circled
// and mathematical letters as what they stand for; with those Cyrillic and Greek letters
// that look like Latin ones as the latter. A second form also reads escapes of JSON and
// HTML and leaves out simple tags of HTML.
//
// The table of letters is short. Text that is spaced out, misspelt on purpose, encoded
// (base64, say) or in an image passes, and so does what is said in other words than those
// of the rules, or in a language that they do not know: most are English, and of a few
// other languages only the commonest phrase is known. Two tricks at once, of which one
// needs escapes to be read and the other not, pass as well. Screening lowers a risk;
// what keeps an agent from harm is what it may do (plugins/permission).
//
// Time and memory are linear in the size of a result. The same result gives the same
// findings.
//
// # Findings
//
// The effect Found, handled by Options.Report, tells what was found: rules and short
// excerpts, never the whole text. The key Findings holds the same for other plugins.
package screening
