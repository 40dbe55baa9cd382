package inspect

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

var (
	importLine = regexp.MustCompile(`(?m)^import \{ ([A-Za-z]+(?:, [A-Za-z]+)*) \} from '\./([a-z]+\.js)';\n`)
	exportLine = regexp.MustCompile(`(?m)^export (?:class|function|const) ([A-Za-z]+)`)
	anyImport  = regexp.MustCompile(`(?m)^\s*import\b|^export (?:default|let|var|\{|\*)|\bimport\(`)
)

// bundle joins a module and what it imports into one script. A browser does not load
// modules from a disk, so each becomes a function that returns what it exports; modules
// come after those they import. The page's modules keep to the forms of import and export
// that this understands, and any other is an error.
func bundle(files fs.FS, main string) (string, error) {
	joined := &joiner{files: files}
	if err := joined.add(main, nil); err != nil {
		return "", fmt.Errorf("inspect: %w", err)
	}
	return "'use strict';\n" + joined.out.String(), nil
}

type joiner struct {
	files fs.FS
	out   strings.Builder
	done  []string
}

func (j *joiner) add(name string, within []string) error {
	if slices.Contains(j.done, name) {
		return nil
	}
	if slices.Contains(within, name) {
		return fmt.Errorf("modules import each other: %s", strings.Join(append(within, name), ", "))
	}
	raw, err := fs.ReadFile(j.files, name)
	if err != nil {
		return err
	}
	text := string(raw)
	for _, found := range importLine.FindAllStringSubmatch(text, -1) {
		if err := j.add(found[2], append(slices.Clone(within), name)); err != nil {
			return err
		}
	}
	text = importLine.ReplaceAllStringFunc(text, func(line string) string {
		found := importLine.FindStringSubmatch(line)
		return fmt.Sprintf("const { %s } = %s;\n", found[1], variable(found[2]))
	})
	if other := anyImport.FindString(text); other != "" {
		return fmt.Errorf("%s has a form of import or export that cannot be joined: %q", name, other)
	}
	var exported []string
	for _, found := range exportLine.FindAllStringSubmatch(text, -1) {
		exported = append(exported, found[1])
	}
	text = exportLine.ReplaceAllStringFunc(text, func(line string) string { return strings.TrimPrefix(line, "export ") })
	fmt.Fprintf(&j.out, "const %s = (() => {\n%s\nreturn { %s };\n})();\n", variable(name), strings.TrimRight(text, "\n"), strings.Join(exported, ", "))
	j.done = append(j.done, name)
	return nil
}

func variable(name string) string { return "module_" + strings.TrimSuffix(name, ".js") }
