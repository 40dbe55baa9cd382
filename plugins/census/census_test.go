package census_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/census"
)

func tree(names ...string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for _, name := range names {
		fsys[name] = &fstest.MapFile{Data: []byte("12345")}
	}
	return fsys
}

func count(t *testing.T, fsys fs.FS, section string) (map[int]census.Level, enginetest.Outcome) {
	t.Helper()
	d := enginetest.Driver{Plugins: []engine.Plugin{census.New(fsys)}}
	if section != "" {
		d.Spec.Sections = map[string]inference.JSON{census.Name: inference.JSON(section)}
	}
	out := d.RunPhase(t, phase.RunStart)
	require.NoError(t, out.Err)
	return maps.Collect(census.Levels.All(out.Snapshot)), out
}

// Capability A6. One action schedules the next, one round each, until the deepest
// level is done.
func TestCascade(t *testing.T) {
	levels, out := count(t, tree("x", "y", "a/x", "b/x", "b/c/x", "b/c/d/e/x"), "")
	require.Equal(t, map[int]census.Level{
		1: {Level: 1, Folders: 1, Files: 2, Bytes: 10},
		2: {Level: 2, Folders: 2, Files: 2, Bytes: 10},
		3: {Level: 3, Folders: 1, Files: 1, Bytes: 5},
		4: {Level: 4, Folders: 1},
		5: {Level: 5, Folders: 1, Files: 1, Bytes: 5},
	}, levels)
	require.Equal(t, 5, out.Report.Rounds)
	for _, e := range enginetest.Select[engine.ActionFinished](out.Events) {
		require.Equal(t, engine.ActionDone, e.Status)
	}
}

// Capability A5. The deepest count that can be asked for still converges.
func TestDeepestCount(t *testing.T) {
	deep := tree(strings.Repeat("d/", 20) + "x")
	levels, out := count(t, deep, `{"max_levels": 16}`)
	require.Len(t, levels, 16)
	require.Equal(t, 16, out.Report.Rounds)
	require.Equal(t, 1, levels[16].Left)
	levels, _ = count(t, deep, `{"max_levels": 1}`)
	require.Equal(t, map[int]census.Level{1: {Level: 1, Folders: 1, Left: 1}}, levels)
}

func TestManyFolders(t *testing.T) {
	levels, _ := count(t, tree("a/x", "b/x", "c/x", "d/x"), `{"max_folders": 3}`)
	require.Equal(t, census.Level{Level: 1, Folders: 1, Left: 1}, levels[1])
	require.Equal(t, 3, levels[2].Folders)
	levels, _ = count(t, fstest.MapFS{}, "")
	require.Equal(t, map[int]census.Level{1: {Level: 1, Folders: 1}}, levels)
}

// locked has a folder that cannot be read.
type locked struct{ fstest.MapFS }

func (l locked) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == "a" {
		return nil, errors.New("permission denied")
	}
	return l.MapFS.ReadDir(name)
}

func TestUnreadableFolder(t *testing.T) {
	levels, _ := count(t, locked{tree("a/x", "b/x")}, "")
	require.Equal(t, census.Level{Level: 2, Folders: 1, Files: 1, Bytes: 5, Unreadable: 1}, levels[2])
}

// The model is told the totals before its first answer, and can ask for the table.
func TestTold(t *testing.T) {
	model := enginetest.NewScript(enginetest.Call("c1", census.Tool, nil), enginetest.Say("done"))
	config, rec := enginetest.Config(t, census.New(tree("x", "a/x")))
	config.Model = model
	eng, err := engine.New(config)
	require.NoError(t, err)
	res, err := eng.Run(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go"))
	require.NoError(t, err)
	require.NoError(t, res.Err)
	require.Contains(t, model.Requests()[0].Messages,
		inference.System("The directory holds 2 files with 10 bytes in 2 folders on 2 levels."))
	result := enginetest.Select[engine.ToolFinished](rec.Events())[0].Result
	var total census.Total
	require.NoError(t, result.Details.Decode(&total))
	require.Equal(t, 2, total.Files)
	require.Contains(t, result.Content, "level 2: 1 folders, 1 files, 5 bytes")
}

func TestFaultySettings(t *testing.T) {
	for _, s := range []census.Settings{{0, 1}, {17, 1}, {1, 0}} {
		require.ErrorContains(t, s.Validate(), "census: ")
	}
}

// FuzzCensus counts any tree the same as a plain walk.
func FuzzCensus(f *testing.F) {
	f.Add("a b/c b/d/e")
	f.Add("")
	f.Add("x/y/z/w x/y")
	f.Fuzz(func(t *testing.T, names string) {
		fsys := fstest.MapFS{}
		for _, name := range strings.Fields(names) {
			if fs.ValidPath(name) && name != "." && strings.Count(name, "/") < 10 {
				fsys[name] = &fstest.MapFile{Data: []byte(name)}
			}
		}
		want := census.Total{}
		if fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if e.IsDir() {
				want.Folders++
				return nil
			}
			want.Files++
			want.Bytes += int64(len(fsys[name].Data))
			return nil
		}) != nil {
			return // a name that is a file and a folder
		}
		levels, _ := count(t, fsys, "")
		got := census.Total{}
		for _, n := range slices.Sorted(maps.Keys(levels)) {
			got.Folders, got.Files, got.Bytes = got.Folders+levels[n].Folders, got.Files+levels[n].Files, got.Bytes+levels[n].Bytes
		}
		require.Equal(t, fmt.Sprint(want), fmt.Sprint(got))
	})
}
