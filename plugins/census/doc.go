// Package census is a plugin that counts the files of a directory when a run
// starts, one level of folders per action round: each round reads the folders of
// one level, writes what it found into the table Levels, and schedules the next
// round if there are folders below. The phase ends when the deepest level is
// done.
//
//	counts := census.New(os.DirFS(dir))
//
// The model is told the totals, and the tool directory_census gives it the table.
// The section "census" of an agent spec bounds the count:
//
//	"census": {"max_levels": 12, "max_folders": 2000}
package census
