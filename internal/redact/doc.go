// Package redact hides texts wherever they are found: in a text, and in the texts,
// numbers and names of a JSON value.
//
//	hide := redact.Texts("[secret]", "hunter2")
//	hide.In("password: hunter2") // password: [secret]
//	hide.InJSON(`{"p":"hunter2"}`) // {"p":"[secret]"}, true
//
// It imports the standard library only.
package redact
