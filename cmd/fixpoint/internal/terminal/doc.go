// Package terminal shows a run to a person: its events as they happen, the
// questions that it asks, and a summary at the end.
//
// Every line begins with a word that says what it is about, aligned to the right,
// so that the output reads as a table and can be searched when it is a file. A
// Printer owns the screen; a View, which is an engine.Observer, and a Prompt,
// which is a gate.Resolver, share one and never write into each other's lines.
package terminal
