// Package files is a plugin with tools that look at and write plain files below
// one directory: list_files, search_text, read_file and write_file.
//
//	tools, err := files.Open("docs", files.Options{})
//	if err != nil { ... }
//	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{tools}, Model: m})
//
// The tools cannot leave the directory, by no path and no symbolic link. They
// see regular files and folders only; what Options excludes does not exist for
// them. Everything they return is in a fixed order and bounded in size, so the
// same directory gives the same results. Results carry their data as Details
// too: a Listing, a Found, an Excerpt or a Written, as JSON.
//
// The first three tools have the kind "read" and the last one "write", which is
// what a permission policy goes by. A Plugin is safe for concurrent use.
package files
