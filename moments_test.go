package fixpoint_test

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/phase"
)

const momentsPage = "docs/moments.md"

// moments are what the three systems let plugins take part in, by the heading of
// docs/moments.md that they are under.
var moments = map[string][]string{
	"gptme": {
		"session.start", "session.end", "turn.pre", "turn.post", "step.pre", "step.post", "generation.pre", "generation.post",
		"generation.chunk", "generation.interrupt", "message.transform", "tool.transform", "tool.execute.pre", "tool.execute.post",
		"tool.confirm", "file.save.pre", "file.save.post", "file.patch.pre", "file.patch.post", "cwd.changed", "cache.invalidated",
		"loop.continue", "elicit",
	},
	"MusePi": {
		"session_start", "session_before_switch", "session_switch", "session_before_branch", "session_branch", "session_before_compact",
		"session.compacting", "session_compact", "session_before_tree", "session_tree", "session_shutdown", "session_stop", "context",
		"before_agent_start", "agent_start", "agent_end", "turn_start", "turn_end", "auto_compaction_*", "auto_retry_*", "ttsr_triggered",
		"todo_reminder", "tool_call", "tool_result", "input", "before_provider_request", "after_provider_response", "user_bash",
		"user_python", "resources_discover", "message_start", "message_update", "message_end", "tool_execution_*",
		"tool_approval_requested", "tool_approval_resolved", "mcp_notification", "credential_disabled",
	},
	"hello-harness": {"beforeRun", "afterRun", "beforeModel", "afterModel", "beforeTool", "afterTool"},
}

// TestMomentsAreAllTold asks docs/moments.md for a row with an answer for each moment
// of the three systems, for no other, and for each of our own phases.
func TestMomentsAreAllTold(t *testing.T) {
	page := readPage(t, momentsPage)
	for system, want := range moments {
		_, section, found := strings.Cut(page, "\n## "+system+"\n")
		require.True(t, found, "no heading %q", system)
		section, _, _ = strings.Cut(section, "\n## ")
		var told []string
		for line := range strings.Lines(section) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
			name := strings.TrimSpace(cells[0])
			if !strings.HasPrefix(line, "| `") {
				continue
			}
			require.GreaterOrEqual(t, len(cells), 2, line)
			require.NotEmpty(t, strings.TrimSpace(cells[1]), "%s has no answer", name)
			told = append(told, strings.Trim(name, "`"))
		}
		require.Equal(t, want, told, "moments of %s", system)
	}
	for p := range phase.All() {
		name := "phase."
		for word := range strings.SplitSeq(p.String(), "_") {
			name += strings.ToUpper(word[:1]) + word[1:]
		}
		require.Contains(t, page, "`"+name+"`")
	}
}

var (
	pageSpan  = regexp.MustCompile("(\\[)?`([^`\n]+)`(?:\\]\\(([^)\n]+)\\))?")
	goName    = regexp.MustCompile(`^([a-z]+)\.([A-Z]\w*(?:\.[A-Z]\w*)?)$`)
	pageLink  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	pageTitle = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// TestMomentsNameWhatExists looks up each Go name on docs/moments.md: it is declared,
// and where it is a link, in the file that the link leads to.
func TestMomentsNameWhatExists(t *testing.T) {
	declared := map[string][]string{} // "pkg.Name" or "pkg.Type.Member" -> files
	for _, file := range goFiles(t) {
		top, _, _ := strings.Cut(file.path, "/")
		if file.isTest() || top == "internal" || top == "cmd" || top == "examples" || file.ast.Name.Name == "main" {
			continue
		}
		for name := range declarations(file.ast) {
			key := file.ast.Name.Name + "." + name
			declared[key] = append(declared[key], file.path)
		}
	}
	names := 0
	for _, span := range pageSpan.FindAllStringSubmatch(readPage(t, momentsPage), -1) {
		text, link := span[2], span[3]
		switch {
		case goName.MatchString(text):
			names++
			files := declared[text]
			if len(files) == 0 {
				t.Errorf("%s names %s, which no package declares", momentsPage, text)
			} else if target := path.Join(path.Dir(momentsPage), link); link != "" && !slices.Contains(files, target) {
				t.Errorf("%s links %s to %s; it is declared in %q", momentsPage, text, target, files)
			}
		case strings.Contains(text, "/"):
			require.DirExists(t, filepath.FromSlash(text))
		}
	}
	require.Greater(t, names, 100, "the names must be found")
}

// declarations returns the exported names of a file, and of its types the methods and
// fields behind the type's name.
func declarations(file *ast.File) map[string]bool {
	names := map[string]bool{}
	add := func(parts ...string) {
		if slices.IndexFunc(parts, func(p string) bool { return !ast.IsExported(p) }) < 0 {
			names[strings.Join(parts, ".")] = true
		}
	}
	members := func(of string, list *ast.FieldList) {
		for _, field := range list.List {
			for _, name := range field.Names {
				add(of, name.Name)
			}
		}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				add(decl.Name.Name)
				continue
			}
			of := decl.Recv.List[0].Type
			for {
				switch inner := of.(type) {
				case *ast.StarExpr:
					of = inner.X
					continue
				case *ast.IndexExpr:
					of = inner.X
					continue
				case *ast.IndexListExpr:
					of = inner.X
					continue
				}
				break
			}
			add(of.(*ast.Ident).Name, decl.Name.Name)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						add(name.Name)
					}
				case *ast.TypeSpec:
					add(spec.Name.Name)
					switch body := spec.Type.(type) {
					case *ast.StructType:
						members(spec.Name.Name, body.Fields)
					case *ast.InterfaceType:
						members(spec.Name.Name, body.Methods)
					}
				}
			}
		}
	}
	return names
}

// TestPagesLinkToWhatExists follows every link in the repository's pages that leads into
// the repository, headings included.
func TestPagesLinkToWhatExists(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, name := range append(pages, "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md") {
		name = filepath.ToSlash(name)
		for _, link := range pageLink.FindAllStringSubmatch(readPage(t, name), -1) {
			if strings.Contains(link[1], ":") {
				continue // to the web, or a mail address
			}
			file, heading, _ := strings.Cut(link[1], "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(filepath.FromSlash(target)); err != nil {
				t.Errorf("%s links to %s: %v", name, link[1], err)
			} else if heading != "" && !slices.Contains(headings(readPage(t, target)), heading) {
				t.Errorf("%s links to %s, which has no such heading", name, link[1])
			}
		}
	}
}

// headings returns the anchors of a page's headings.
func headings(page string) (anchors []string) {
	for _, title := range pageTitle.FindAllStringSubmatch(page, -1) {
		anchors = append(anchors, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
				return r
			}
			return -1
		}, strings.ToLower(title[1])))
	}
	return anchors
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(name))
	require.NoError(t, err)
	return string(text)
}
