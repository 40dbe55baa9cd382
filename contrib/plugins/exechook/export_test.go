package exechook

import "github.com/ddd26017/fixpoint/inference"

// Fits reports whether a matcher is about one of the names.
func Fits(pattern string, names ...string) (bool, error) {
	m, err := newMatcher(pattern)
	return m.fits(names...), err
}

// Words splits a command line.
func Words(line string, env map[string]string) []string {
	words, _ := splitWords(line, env)
	return words
}

// There and Back map arguments to what programs see and back.
func (t ToolName) There(call inference.ToolCall) (string, inference.JSON, error) {
	return t.theirs(call)
}
func (t ToolName) Back(input inference.JSON) (inference.JSON, error) { return t.own(input) }

// Remembered returns the number of calls that the plugin remembers.
func Remembered(p *Plugin) int {
	p.memo.mu.Lock()
	defer p.memo.mu.Unlock()
	return p.memo.recent.Len()
}

// OneReading reports whether programs may read arguments in another way than a tool.
func OneReading(args, schema inference.JSON) error { return oneReading(args, schema) }
