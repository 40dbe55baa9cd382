package deferred

import (
	"cmp"
	"encoding/json"
	"math/bits"
	"slices"
	"strings"
	"unicode"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
)

// What a word of a query is worth by where it is found, best first. The start of a
// word of three letters or more counts half.
const (
	inName        = 12
	inDescription = 4
	inSchema      = 2
	isName        = 1000 // the query names the tool
)

// queryWords is how many different words of a query count.
const queryWords = 32

// catalog holds the deferred tools. It is immutable.
type catalog struct {
	tools  []*tool // by name
	byName map[string]*tool
}

// tool is a deferred tool as a search sees it.
type tool struct {
	name  string
	line  string         // beginning of the description
	words map[string]int // what each of its words is worth
}

func newCatalog(tools []engine.Tool) *catalog {
	c := &catalog{byName: map[string]*tool{}}
	for _, t := range tools {
		if t == nil {
			continue // the registrar complains
		}
		spec := t.Spec()
		if c.byName[spec.Name] == nil {
			c.byName[spec.Name] = describe(spec)
			c.tools = append(c.tools, c.byName[spec.Name])
		}
	}
	slices.SortFunc(c.tools, func(a, b *tool) int { return cmp.Compare(a.name, b.name) })
	return c
}

func (c *catalog) has(name string) bool { return c.byName[name] != nil }

func describe(spec inference.ToolSpec) *tool {
	t := &tool{name: spec.Name, line: oneLine(spec.Description, lineLength), words: map[string]int{}}
	t.learn(inName, spec.Name)
	t.learn(inDescription, spec.Description)
	var schema any
	if json.Unmarshal([]byte(spec.Schema), &schema) == nil {
		t.learnSchema(schema)
	}
	return t
}

func (t *tool) learn(worth int, text string) {
	for _, w := range words(text) {
		t.words[w] = max(t.words[w], worth)
	}
}

// learnSchema takes in the names of properties and what is said about them, and not
// the words of the schema language itself.
func (t *tool) learnSchema(schema any) {
	switch s := schema.(type) {
	case []any:
		for _, e := range s {
			t.learnSchema(e)
		}
	case map[string]any:
		for key, e := range s {
			if text, ok := e.(string); ok && (key == "description" || key == "title") {
				t.learn(inSchema, text)
			}
			if props, ok := e.(map[string]any); ok && key == "properties" {
				for name, p := range props {
					t.learn(inSchema, name)
					t.learnSchema(p)
				}
				continue
			}
			if list, ok := e.([]any); ok && key == "enum" {
				for _, choice := range list {
					if text, ok := choice.(string); ok {
						t.learn(inSchema, text)
					}
				}
				continue
			}
			t.learnSchema(e)
		}
	}
}

// rank returns the tools that have to do with the query, the best first. Words that
// few tools have count more, and those that all have only if there are no others;
// between equals the name decides.
func (c *catalog) rank(query string) []*tool {
	wanted := words(query)
	wanted = wanted[:min(len(wanted), queryWords)]
	scores, common := map[*tool]int{}, map[*tool]int{}
	for _, w := range wanted {
		worth := map[*tool]int{}
		for _, t := range c.tools {
			if n := t.worth(w); n > 0 {
				worth[t] = n
			}
		}
		to := scores
		if len(worth) == len(c.tools) {
			to = common
		}
		for t, n := range worth {
			to[t] += n * bits.Len(uint(len(c.tools)/len(worth)))
		}
	}
	if t := cmp.Or(c.byName[query], c.byName[strings.TrimSpace(query)]); t != nil {
		scores[t] += isName
	}
	if len(scores) == 0 {
		scores = common
	}
	var out []*tool
	for _, t := range c.tools {
		if scores[t] > 0 {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b *tool) int { return cmp.Compare(scores[b], scores[a]) })
	return out
}

// worth is what the tool has to do with the word.
func (t *tool) worth(word string) int {
	best := t.words[word]
	if len(word) < 3 {
		return best
	}
	for w, n := range t.words {
		if n/2 > best && (strings.HasPrefix(w, word) || len(w) >= 3 && strings.HasPrefix(word, w)) {
			best = n / 2
		}
	}
	return best
}

// words returns the different words of a text in lower case, in order: runs of
// letters and digits, taken apart where a capital follows a small letter.
func words(text string) (out []string) {
	seen := map[string]bool{}
	var word []rune
	end := func() {
		if w := strings.ToLower(string(word)); w != "" && !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
		word = word[:0]
	}
	last := rune(0)
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
		case unicode.IsUpper(r) && unicode.IsLower(last):
			end()
			word = append(word, r)
		default:
			word = append(word, r)
		}
		last = r
	}
	end()
	return out
}

// oneLine returns the text on one line, of at most n characters.
func oneLine(text string, n int) string {
	r := []rune(strings.Join(strings.Fields(text), " "))
	if len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return string(r)
}
