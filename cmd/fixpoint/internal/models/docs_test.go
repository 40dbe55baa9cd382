package models_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/models"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/specfile"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// The guide's examples are specs, and the defaults that it tells are the defaults.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/models.md")
	require.NoError(t, err)
	told := false
	for _, block := range yamlBlock.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\r\n", "\n"), -1) {
		spec := block[1]
		if !strings.HasPrefix(spec, "id:") {
			spec = "id: x\n" + spec
		}
		specs, err := specfile.ParseYAML("models.md", []byte(spec))
		require.NoError(t, err, spec)
		_, err = models.ServiceSection.From(specs[0])
		require.NoError(t, err, spec)
		settings, err := models.Section.From(specs[0])
		require.NoError(t, err, spec)
		require.Equal(t, models.Default(), settings)
		_, has := specs[0].Sections[models.Section.Name()]
		told = told || has
	}
	require.True(t, told)
	for _, name := range models.Names() {
		require.Contains(t, string(text), "| `"+name+":NAME` |")
	}
}
