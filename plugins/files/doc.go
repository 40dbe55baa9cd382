// Package files is a plugin with tools that look at and write plain files below
// one directory: list_files, search_text, read_file, write_file and edit_file.
//
//	tools, err := files.Open("docs", files.Options{})
//	if err != nil { ... }
//	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{tools}, Model: m})
//
// The tools cannot leave the directory, by no path and no symbolic link. They
// see regular files and folders only; what Options excludes does not exist for
// them. Everything they return is in a fixed order and bounded in size, so the
// same directory gives the same results. Results carry their data as Details
// too: a Listing, a Found, an Excerpt, a Written or an Edited, as JSON.
//
// The first three tools have the kind "read" and the last two "write", which is
// what a permission policy goes by. A Plugin is safe for concurrent use; calls that
// write do so one after another.
//
// # Taking part
//
// A call that wrote a file schedules Saved, one that edited a file Patched, for the
// phase after the call. An engine has one handler for each kind of action, and those two
// are here. Other plugins react in one of two ways: a hook of theirs reads the key
// Changed, the files that the run has written so far, at StepEnd or RunEnd say; or
// whoever puts the engine together names an action of theirs in Options.OnSaved and
// Options.OnPatched, and it runs once for each file in the next round of the phase:
//
//	files.Open(dir, files.Options{OnSaved: func(s files.Save) []phase.Action {
//		return []phase.Action{format.Check.New(s.Path)}
//	}})
package files
