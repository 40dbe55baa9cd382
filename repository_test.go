package fixpoint_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/ddd26017/fixpoint"

// corePackages are the packages that make up the engine itself.
var corePackages = []string{"state", "inference", "effects", "phase", "gate", "engine"}

const (
	btreePath    = "github.com/tidwall/btree"
	errgroupPath = "golang.org/x/sync/errgroup"
)

// leafPackages are concepts that are none of the engine's, in internal/. The core
// may import them; they import the standard library and what is in leafImports.
var leafPackages = []string{
	"internal/courtesy", "internal/enum", "internal/fanout", "internal/git", "internal/jsonarray",
	"internal/jsonpos", "internal/ledger", "internal/memory", "internal/origin", "internal/packed", "internal/pushseq", "internal/redact",
	"internal/sorted", "internal/tagged", "internal/vector",
}

// leafImports says which leaf imports which third-party package, alone in the core:
// trees are in sorted only, and goroutines are spawned by fanout only.
var leafImports = map[string]string{
	"internal/fanout": errgroupPath,
	"internal/sorted": btreePath,
}

// allowedImports says which packages of this module and which third-party
// packages each part of the module may import outside its tests. The standard
// library is always allowed. A part is a top-level directory, or one plugin or
// store below plugins and store, or a folder below engine; a part may always import
// itself.
var allowedImports = map[string][]string{
	"":              nil,
	"state":         {"internal/*"},
	"inference":     {"internal/*"},
	"inference/*":   {"inference"},
	"effects":       {"state", "internal/*"},
	"phase":         {"state", "effects", "inference"},
	"gate":          {"state", "inference", "phase", "internal/*"},
	"engine":        {"state", "inference", "effects", "phase", "gate", "store", "internal/*"},
	"engine/*":      corePackages,                                // what only looks at an engine; it does not count as the core
	"engine/worker": append(slices.Clone(corePackages), "store"), // what drives engines
	"internal/*":    {btreePath, errgroupPath},                   // TestLeaves says which ones
	"enginetest":    corePackages,
	"plugins":       append(slices.Clone(corePackages), "internal/*"),
	"plugins/slash": corePackages, // which other plugins register
	"plugins/*":     append(slices.Clone(corePackages), "plugins/slash", "internal/*"),
	"store":         nil,                                                                      // the contract, so that a store need not link the engine
	"store/*":       append(slices.Clone(corePackages), "store", "store/*"),                   // the conformance kit breaks stores with the fault store
	"bench":         append(slices.Clone(corePackages), "plugins/*", btreePath, errgroupPath), // for the baselines
	"examples/*":    append(slices.Clone(corePackages), "enginetest", "plugins/*", "plugins/slash", "store", "store/*"),
}

// allowedInTests are the third-party packages that tests of the core module
// may import besides those of the code they test.
var allowedInTests = []string{"github.com/stretchr/testify/require"}

// TestImportGraph holds the module to the import graph of the design: no
// package imports upward, and third-party code enters at one place only.
func TestImportGraph(t *testing.T) {
	for _, pkg := range listPackages(t) {
		part := partOf(pkg.ImportPath)
		allowed, known := allowedImports[part.rule]
		if !known {
			t.Errorf("%s: %q is no part of the design; it has no import rule", pkg.ImportPath, part.dir)
			continue
		}
		for _, imported := range pkg.allImports(t) {
			switch target, inside := strings.CutPrefix(imported, module); {
			case inside && (target == "" || target[0] == '/'):
				to := partOf(imported)
				if to != part && !slices.Contains(allowed, to.rule) {
					t.Errorf("%s imports %s; allowed: itself, %q", pkg.ImportPath, imported, allowed)
				}
			case isThirdParty(imported) && !slices.Contains(allowed, imported):
				t.Errorf("%s imports %s; allowed: %q", pkg.ImportPath, imported, allowed)
			}
		}
		for _, imported := range slices.Concat(pkg.TestImports, pkg.XTestImports) {
			if isThirdParty(imported) && !isOurs(imported) &&
				!slices.Contains(allowed, imported) && !slices.Contains(allowedInTests, imported) {
				t.Errorf("tests of %s import %s; allowed: %q", pkg.ImportPath, imported, allowedInTests)
			}
		}
	}
}

// TestLeaves holds the leaves to what makes them leaves: they are the packages that
// internal/ has, and what they link is the standard library and what leafImports says.
func TestLeaves(t *testing.T) {
	var found []string
	for _, pkg := range listPackages(t) {
		name, inside := strings.CutPrefix(pkg.ImportPath, module+"/")
		if !inside || !strings.HasPrefix(name, "internal/") {
			continue
		}
		found = append(found, name)
		for _, imported := range pkg.allImports(t) {
			require.True(t, imported == leafImports[name] || !isThirdParty(imported), "%s imports %s", name, imported)
		}
		for _, imported := range slices.Concat(pkg.TestImports, pkg.XTestImports) {
			allowed := imported == pkg.ImportPath || imported == leafImports[name] || slices.Contains(allowedInTests, imported)
			require.True(t, allowed || !isThirdParty(imported), "tests of %s import %s", name, imported)
		}
	}
	require.ElementsMatch(t, leafPackages, found, "packages of this module in internal/")
}

// TestDirectRequirements keeps the dependency list of the core at three.
func TestDirectRequirements(t *testing.T) {
	var mod struct {
		Module  struct{ Path string }
		Require []struct {
			Path     string
			Indirect bool
		}
		Replace []struct{ Old struct{ Path string } }
	}
	require.NoError(t, json.Unmarshal(goCommand(t, "mod", "edit", "-json"), &mod))
	require.Equal(t, module, mod.Module.Path)

	var direct []string
	for _, r := range mod.Require {
		if !r.Indirect {
			direct = append(direct, r.Path)
		}
	}
	require.ElementsMatch(t, []string{
		"github.com/tidwall/btree",
		"golang.org/x/sync",
		"github.com/stretchr/testify",
	}, direct, "direct requirements of go.mod")
	require.Empty(t, mod.Replace, "a replace in the core's go.mod is ignored for those who import it")
}

// TestTestifyStaysInTests makes sure that a program that imports any package
// of the core does not link the test library or what it brings along.
func TestTestifyStaysInTests(t *testing.T) {
	deps := strings.Fields(string(goCommand(t, "list", "-deps", "./...")))
	for _, name := range corePackages {
		require.Contains(t, deps, module+"/"+name, "go list -deps must see the core")
	}
	for _, dep := range deps {
		for _, part := range []string{"testify", "go-spew", "go-difflib", "yaml"} {
			require.NotContains(t, dep, part, "non-test code links a package that only tests may use")
		}
	}
}

// TestCoreSize keeps the engine small enough to be read. Decision 14 tells why the
// limit stands where it does, and which way it may move.
func TestCoreSize(t *testing.T) {
	const limit = 12_000
	total, leaves := 0, 0
	for _, file := range goFiles(t) {
		dir := path.Dir(file.path)
		switch {
		case file.isTest():
		case slices.Contains(corePackages, dir):
			total += file.code
		case slices.Contains(leafPackages, dir):
			leaves += file.code
		}
	}
	t.Logf("%d of %d lines, and %d in the leaves %q", total, limit, leaves, leafPackages)
	require.Positive(t, total)
	require.Less(t, total, limit, "lines of %q without tests", corePackages)
}

// longFile matches the lines of docs/decisions.md that allow a file to be long
// and say why.
var longFile = regexp.MustCompile("(?m)^[ \t]*- `([^`]+\\.go)`: (.+)$")

// TestFileSizes holds every file to one concept: at most 400 lines, unless
// docs/decisions.md lists the file with a reason, and never a collection of
// leftovers.
func TestFileSizes(t *testing.T) {
	const limit = 400
	decisions, err := os.ReadFile("docs/decisions.md")
	require.NoError(t, err)
	listed := map[string]bool{}
	for _, match := range longFile.FindAllStringSubmatch(string(decisions), -1) {
		listed[match[1]] = true
	}
	leftovers := []string{"util", "utils", "common", "type", "types", "helper", "helpers", "misc"}

	for _, file := range goFiles(t) {
		if file.isTest() {
			continue
		}
		long := file.lines > limit
		if long && !listed[file.path] {
			t.Errorf("%s has %d lines, more than %d, and docs/decisions.md gives no reason", file.path, file.lines, limit)
		}
		if long {
			delete(listed, file.path)
		}
		names := []string{
			path.Base(path.Dir(file.path)),
			file.ast.Name.Name,
			strings.TrimSuffix(path.Base(file.path), ".go"),
		}
		for _, name := range names {
			if slices.Contains(leftovers, name) {
				t.Errorf("%s: %q does not say what is inside; name it after its concept", file.path, name)
			}
		}
	}
	for name := range listed {
		t.Errorf("docs/decisions.md lists %s, which is not longer than %d lines (any more)", name, limit)
	}
}

// TestTopLevel keeps the first look at the repository as the design has it.
func TestTopLevel(t *testing.T) {
	allowed := []string{
		"engine", "phase", "state", "effects", "gate", "inference",
		"bench", "enginetest", "plugins", "store", "cmd", "contrib", "examples", "docs", "internal",
	}
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, entry := range entries {
		if entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") {
			require.Contains(t, allowed, entry.Name(), "a new top-level folder needs a place in the design")
		}
	}
}

// TestModules makes sure that every module of the repository is in go.work, so that each
// sees a change to the core at once, and that all of contrib is in modules of its own: it
// brings third-party code, which nobody gets who imports the core.
func TestModules(t *testing.T) {
	var work struct{ Use []struct{ DiskPath string } }
	require.NoError(t, json.Unmarshal(goCommand(t, "work", "edit", "-json"), &work))
	var used, found []string
	for _, use := range work.Use {
		used = append(used, path.Clean(filepath.ToSlash(use.DiskPath)))
	}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (entry.Name() == "testdata" || entry.Name()[0] == '.' || entry.Name()[0] == '_'):
			return filepath.SkipDir
		case entry.Name() == "go.mod":
			found = append(found, path.Dir(filepath.ToSlash(name)))
		}
		return nil
	})
	require.NoError(t, err)
	require.ElementsMatch(t, found, used, "modules in the tree and in go.work")
	groups := []string{"contrib", "contrib/model", "contrib/plugins"}
	for _, dir := range groups {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, entry := range entries {
			if name := path.Join(dir, entry.Name()); !slices.Contains(groups, name) {
				require.Contains(t, found, name, "what is in contrib is a module")
			}
		}
	}
}

// provedCapabilities are the capabilities that must be shown by a test, which
// says so in its doc comment with a line such as "Capability A4."
var provedCapabilities = map[string]string{
	"A1":  "structural parts always work, behavioural parts only while their plugin is active",
	"A2":  "the filter of active hooks; an empty one lets all through",
	"A3":  "hooks of a phase run in parallel on one snapshot and commit once",
	"A4":  "on Exclusive overlap a greedy batch commits, the deferred are retried one by one",
	"A5":  "gather, then rounds; 16 pass, a 17th is a typed error",
	"A6":  "action handlers run on fresh snapshots and may schedule more",
	"A7":  "transforms change this call's request, in registration order",
	"A8":  "effects after commit; their failures never roll back",
	"A9":  "inference overrides merge per field",
	"A10": "gate decisions, strictest wins",
	"A11": "typed tool policies in the same resolution",
	"A12": "duplicate registrations fail when registered",
	"A13": "nine phases, life cycles, termination reasons, stop conditions",
	"A14": "suspend and resume",
	"A15": "scopes, merge strategies, revisions, export and import",
	"A16": "agent specs as data, sections checked before any hook runs",
	"A17": "built-in actions: override, context, tool lists",
	"A18": "checkpoints, handoff, delegates",
	"A19": "a permission check and its pause are settled in one phase",
	"G1":  "every moment, as a phase, a derived event, an observer's event or a gate",
	"G2":  "tiers, and StopPhase: failed checks keep a commit of a later tier from happening",
	"G3":  "effects delivered in the background",
	"G4":  "one bad hook does not take the chain down",
	"G5":  "allowlists, prompts and what was approved for good form a chain; nobody to decide has a stated default",
	"G6":  "questions of every kind; a secret is nowhere but in the vault and in its tool",
	"G7":  "first-party plugins: cost, tokens, time, directory, context, screening, snapshots, commits, allowlist",
	"G8":  "a tool that brings its own hooks, gates and commands",
	"G9":  "concurrent runs on one engine never see each other",
	"H1":  "before and after run, model and tool; after fires on failures too",
	"H2":  "an observer can change nothing",
	"H3":  "a hook can edit this call's request and never the history",
	"H4":  "no plugins at all: the run works the same",
	"H5":  "a trace that shows a run's real timing",
	"H6":  "veto, priority and conflicts, isolation, a narrow context, a manifest of hooks, finer moments",
	"M1":  "a tool call vetoed with a reason; an error in the guard blocks",
	"M2":  "arguments rewritten and re-checked, results rewritten field by field",
	"M3":  "the message list of one call rewritten, history untouched",
	"M4":  "errors of ordinary handlers are reported and the run goes on",
	"M5":  "without anybody to ask every question has a stated default",
	"M6":  "slash commands, of which a duplicate names both plugins",
	"M7":  "gates cancel or replace internal actions",
	"M8":  "continue after the natural end with added context, capped",
	"M9":  "external hook programs, which fail closed at the gate",
	"B1":  "conflicts per table entry",
	"B2":  "explain who wrote a key, where, and what lost",
	"B3":  "state at a revision, diff, fork, replay",
	"B4":  "the inspector, and the Chrome trace-event export",
	"B5":  "an approval is bound to a fingerprint of the exact arguments",
	"B6":  "a crash-safe store with leases: nothing acknowledged lost, nothing committed run twice",
	"B7":  "effects with stable ids, and an outbox for those that must not be lost",
	"B8":  "deterministic event sequences",
	"B9":  "declared reads exclude write skew",
	"B10": "a static report of which hooks can conflict",
}

// provedReports are what users of other hook systems reported. For each there must be
// a test of the whole kind, not only of the case reported, which says so in its doc
// comment with a line such as "Report 12."
var provedReports = map[string]string{
	"1":  "of two that rewrite one call the faster wins",
	"2":  "one without an opinion erases another's rewrite",
	"3":  "somebody's ask, approval or result switches off a block",
	"4":  "the model is told of a block, and the call runs",
	"5":  "a guard that could not start looks like one that said no",
	"6":  "calls of delegates skip the guards",
	"7":  "a declared moment that never fires",
	"8":  "a guard that hangs freezes everything",
	"9":  "hung shutdowns add up",
	"10": "work of a hook that missed its deadline lands later",
	"11": "what is on an allowlist is not shown to the guards",
	"12": "a run goes on and on, since the stop depends on wording",
	"13": "hooks after a tool do not run when it fails",
	"14": "a question about a result runs the tool again, or never finds its answer",
	"15": "what was approved is not what runs",
	"16": "a context that is said to be read-only hands out live objects",
	"17": "a plugin that is loaded twice fires twice",
	"18": "one failing call takes its siblings down",
}

// provedScenarios are further such cases, found by reading the source of those systems.
// Their tests say "Scenario: clean end."
var provedScenarios = map[string]string{
	"redaction":     "a formatter undoes a redactor's work",
	"one shape":     "hooks miss results of tools of another sort",
	"secret answer": "a secret answer reaches state, events, trace, checkpoint or error texts",
	"clean end":     "ending the run from a hook before a tool looks like an error of the tool",
	"refused edit":  "an edit that a tool cannot take looks like a refusal",
	"endless edits": "a gate edits for ever",
	"half a plugin": "parts of a plugin whose setup failed stay",
}

var (
	capabilityMention = regexp.MustCompile(`Capabilit(?:y|ies):?\s+([A-Z]\d+(?:(?:,\s*and\s+|,\s*|\s+and\s+|\s+)[A-Z]\d+\b)*)`)
	capabilityID      = regexp.MustCompile(`[A-Z]\d+`)
	reportMention     = regexp.MustCompile(`Reports?\s+(\d+(?:(?:,\s*and\s+|,\s*|\s+and\s+)\d+)*)\.`)
	reportID          = regexp.MustCompile(`\d+`)
	scenarioMention   = regexp.MustCompile(`Scenario:\s+([a-z ]+)\.`)
	scenarioID        = regexp.MustCompile(`.+`)
)

// TestProofs asks for at least one test, fuzz target or example that claims each of the
// capabilities, reports and scenarios above, so that searching for one finds its proof,
// and for no claim of a report or scenario that is not there.
func TestProofs(t *testing.T) {
	files := goFiles(t)
	for _, kind := range []struct {
		word        string
		proved      map[string]string
		mention, id *regexp.Regexp
		all         bool // every id is listed
	}{
		{"Capability ", provedCapabilities, capabilityMention, capabilityID, false},
		{"Report ", provedReports, reportMention, reportID, true},
		{"Scenario: ", provedScenarios, scenarioMention, scenarioID, true},
	} {
		claimed := claims(files, kind.mention, kind.id)
		for _, id := range slices.Sorted(maps.Keys(kind.proved)) {
			if len(claimed[id]) == 0 {
				t.Errorf("no test has a comment %q: %s", kind.word+id+".", kind.proved[id])
			}
		}
		for _, id := range slices.Sorted(maps.Keys(claimed)) {
			if kind.proved[id] == "" && kind.all {
				t.Errorf("%s: there is no %q", claimed[id], kind.word+id)
			}
		}
	}
}

// TestFirstPartyPluginsAreProved asks for a test of G7 in each of the packages that are
// to have what the row lists.
func TestFirstPartyPluginsAreProved(t *testing.T) {
	claimed := claims(goFiles(t), capabilityMention, capabilityID)["G7"]
	for _, dir := range []string{
		"plugins/cost", "plugins/tokens", "plugins/clock", "plugins/agentsmd", "plugins/activecontext", "plugins/screening",
		"plugins/snapshots", "plugins/autocommit", "contrib/plugins/allowlist",
	} {
		require.True(t, slices.ContainsFunc(claimed, func(test string) bool { return strings.HasPrefix(test, dir+"/") }), "%s", dir)
	}
}

// claims returns the ids that doc comments of tests mention, with the tests.
func claims(files []sourceFile, mention, id *regexp.Regexp) map[string][]string {
	claimed := map[string][]string{}
	for _, file := range files {
		if !file.isTest() {
			continue
		}
		for _, decl := range file.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || fn.Doc == nil || !isTestName(fn.Name.Name) {
				continue
			}
			for _, found := range mention.FindAllStringSubmatch(fn.Doc.Text(), -1) {
				for _, name := range id.FindAllString(found[1], -1) {
					claimed[name] = append(claimed[name], file.path+" "+fn.Name.Name)
				}
			}
		}
	}
	return claimed
}

func isTestName(name string) bool {
	return slices.ContainsFunc([]string{"Test", "Fuzz", "Example"}, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}

// listedPackage is what go list says of one package.
type listedPackage struct {
	Dir            string
	ImportPath     string
	Imports        []string
	TestImports    []string
	XTestImports   []string
	IgnoredGoFiles []string
}

// allImports adds to the imports on this platform those of files for others.
func (p listedPackage) allImports(t *testing.T) []string {
	all := slices.Clone(p.Imports)
	for _, name := range p.IgnoredGoFiles {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			all = append(all, imported)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func listPackages(t *testing.T) []listedPackage {
	t.Helper()
	var all []listedPackage
	decoder := json.NewDecoder(bytes.NewReader(goCommand(t, "list", "-json", "./...")))
	for {
		var p listedPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		all = append(all, p)
	}
	for _, name := range corePackages {
		require.True(t, slices.ContainsFunc(all, func(p listedPackage) bool {
			return p.ImportPath == module+"/"+name
		}), "go list ./... must see package %s", name)
	}
	return all
}

// part is a unit of the import graph: its directory and the rule it is under.
type part struct{ dir, rule string }

func partOf(importPath string) part {
	elements := strings.Split(strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/"), "/")
	top := elements[0]
	if _, grouped := allowedImports[top+"/*"]; grouped && len(elements) > 1 {
		dir, rule := top+"/"+elements[1], top+"/*"
		if _, own := allowedImports[dir]; own {
			rule = dir
		}
		return part{dir, rule}
	}
	return part{dir: top, rule: top}
}

// isThirdParty tells imports of modules, this one included, from the standard
// library, whose first path element never has a dot.
func isThirdParty(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return strings.Contains(first, ".")
}

func isOurs(importPath string) bool {
	return importPath == module || strings.HasPrefix(importPath, module+"/")
}

func goCommand(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "go %s: %s", strings.Join(args, " "), &stderr)
	return out
}

// sourceFile is a Go file of the repository, nested modules included.
type sourceFile struct {
	path  string // relative to the repository, with slashes
	lines int
	code  int // lines that are neither blank nor a comment
	ast   *ast.File
}

func (f sourceFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// goFiles reads every Go file of the repository except those that the go
// command ignores too.
func goFiles(t *testing.T) []sourceFile {
	t.Helper()
	var files []sourceFile
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			if name != "." && (base == "testdata" || base[0] == '.' || base[0] == '_') {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") || base[0] == '.' || base[0] == '_' {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		tree, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		files = append(files, sourceFile{
			path:  filepath.ToSlash(name),
			lines: bytes.Count(text, []byte("\n")),
			code:  codeLines(text),
			ast:   tree,
		})
		return nil
	})
	require.NoError(t, err)
	return files
}

func codeLines(text []byte) int {
	n := 0
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && !bytes.HasPrefix(line, []byte("//")) {
			n++
		}
	}
	return n
}
