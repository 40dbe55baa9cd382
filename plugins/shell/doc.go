// Package shell is a plugin with a tool that runs command lines: shell.
//
//	sh, err := shell.New(dir, shell.Options{})
//	if err != nil { ... }
//	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{sh, permission.New()}, Model: m})
//
// A line runs with "sh -c" in the directory given to New. It is not confined to it: it
// may do whatever the program's user may. The tool has the kind "exec", which is what a
// permission policy goes by.
//
// Around the line:
//
//   - The environment has the variables that Options.Env names and Options.Set sets, and
//     no others, so that no secret of the program gets into a line's hands by accident. A
//     line that looks for one finds it wherever its user may read, on some systems in
//     /proc; only another user or a sandbox keeps it from there. Standard input is empty.
//   - Output and errors come as one text, as they were written. Of a long one the
//     beginning and the end are kept, and how much is missing in between is said.
//   - A line that takes longer than its limit, or whose run is cancelled, is killed with
//     everything it started. So is what it left in the background when it ends; only
//     what has made a process group of its own stays. Systems other than Unix kill the
//     shell alone.
//   - The exit code, and what else there is to know, is in the result's details: a Done.
//     A result is an error when the code is not 0.
//
// # Working directory
//
// With Options.Cwd the thread has a working directory, as plugins/cwd keeps it:
//
//	shell.New(dir, shell.Options{Cwd: cwd.Dir})
//
// Lines then begin there, and a line that ends elsewhere below dir moves the thread with
// it, from which plugins/cwd derives its event. The shell reports where it ends through
// a pipe of its own, descriptor 3, so that nothing a line prints can be taken for it; a
// line that writes to that very descriptor gets no further than one that changes the
// directory, since only a folder below dir counts. A line that replaces the shell (exec)
// or sets a trap on EXIT leaves the directory as it was, and so does one on a system
// other than Unix. If the key is not registered in an engine, lines begin in dir.
//
// Of lines that run in parallel and move the thread, one counts; the model is told that
// the change of the other was refused.
package shell
