package exechook

import (
	"slices"
	"strings"
)

// Event is a moment that commands can be run on, by the name that settings files
// give it.
type Event string

// The events that are fired.
const (
	PreToolUse         Event = "PreToolUse"         // a gate over the call
	PermissionRequest  Event = "PermissionRequest"  // a question about the call is about to be put to somebody
	PostToolUse        Event = "PostToolUse"        // after a call that did its work
	PostToolUseFailure Event = "PostToolUseFailure" // after a call that ran and failed
	UserPromptSubmit   Event = "UserPromptSubmit"   // a run starts with a user's message
	SessionStart       Event = "SessionStart"       // a run starts
	SessionEnd         Event = "SessionEnd"         // a run ends
	SubagentStart      Event = "SubagentStart"      // a delegate's run starts
	Stop               Event = "Stop"               // the model asks for no more tools
	SubagentStop       Event = "SubagentStop"       // the same, in a delegate's run
	Notification       Event = "Notification"       // somebody has to answer a question
	PreCompact         Event = "PreCompact"         // older messages are about to be summarised
)

// traits is what the settings reader knows about an event.
type traits struct {
	matches  bool     // it has something that a matcher is held against
	values   []string // all that there is of it; nil when it is open
	fires    bool     // this package fires it
	decides  bool     // "fail_open" has a meaning
	addsText bool     // plain output is context for the model
}

// What matchers of the events that are not about a tool or an agent are held against.
const (
	startup           = "startup" // the thread's first run
	resumed           = "resume"  // a later one
	other             = "other"   // the reason of every end: those that agents know besides are about their user interfaces
	permissionPrompt  = "permission_prompt"
	elicitationDialog = "elicitation_dialog"
)

// events holds all names that agents know. Those that do not fire are here so that a
// settings file that has them can still be used, with a warning.
var events = map[Event]traits{
	PreToolUse:         {matches: true, fires: true, decides: true},
	PermissionRequest:  {matches: true, fires: true},
	PostToolUse:        {matches: true, fires: true},
	PostToolUseFailure: {matches: true, fires: true},
	UserPromptSubmit:   {fires: true, decides: true, addsText: true},
	SessionStart:       {matches: true, values: []string{startup, resumed}, fires: true, addsText: true},
	SessionEnd:         {matches: true, values: []string{other}, fires: true},
	SubagentStart:      {matches: true, fires: true, addsText: true},
	Stop:               {fires: true},
	SubagentStop:       {matches: true, fires: true},
	Notification:       {matches: true, values: []string{permissionPrompt, elicitationDialog}, fires: true},
	PreCompact:         {matches: true, values: []string{automatic, manual}, fires: true, decides: true},

	"ConfigChange": {}, "CwdChanged": {}, "Elicitation": {}, "ElicitationResult": {}, "FileChanged": {},
	"InstructionsLoaded": {}, "PermissionDenied": {}, "PostCompact": {}, "PostToolBatch": {},
	"Setup": {}, "StopFailure": {}, "TaskCompleted": {}, "TaskCreated": {}, "TeammateIdle": {},
	"UserPromptExpansion": {}, "WorktreeCreate": {}, "WorktreeRemove": {},
}

// Events returns the events that are fired, sorted. The slice is the caller's.
func Events() []Event {
	var out []Event
	for e, t := range events {
		if t.fires {
			out = append(out, e)
		}
	}
	slices.Sort(out)
	return out
}

func eventNames() string {
	var names []string
	for _, e := range Events() {
		names = append(names, string(e))
	}
	return strings.Join(names, ", ")
}
