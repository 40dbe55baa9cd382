package exechook

import "fmt"

// Cause says why a program did not decide. A deliberate no is none of these.
type Cause string

// The causes.
const (
	StartFailed   Cause = "start_failed"   // the operating system could not start it
	NotFound      Cause = "not_found"      // there is no such program
	NotExecutable Cause = "not_executable" // it may not be executed
	NoScript      Cause = "no_script"      // the interpreter could not open the script, and exited with the code of a no
	BadScript     Cause = "bad_script"     // the shell could not parse the script, and exited with the code of a no
	TimedOut      Cause = "timed_out"
	Crashed       Cause = "crashed" // a signal ended it
	Exited        Cause = "exited"  // with a status other than 0 and 2
	BadOutput     Cause = "bad_output"
	Cancelled     Cause = "cancelled" // the run was, meanwhile
)

// ProgramError is a program that did not decide. As the error of a gate it blocks the call
// with the cause gate_failed, where a program's no has the cause decided.
type ProgramError struct {
	Event   Event
	Command string
	Place   string // of the rule
	Cause   Cause
	Detail  string // what happened
	Stderr  string // what the program wrote there, cut to Options.MaxOutput
}

func (f *ProgramError) Error() string {
	s := fmt.Sprintf("exechook: the %s hook %q (%s) failed: %s: %s", f.Event, f.Command, f.Place, f.Cause, f.Detail)
	if f.Stderr != "" {
		s += ": " + f.Stderr
	}
	return s
}
