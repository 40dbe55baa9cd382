// Package headline has two plugins that write one line about what an agent is
// doing, together: Focus says what it works on, and Outline how far it is. The
// line is kept under Key, which belongs to a third plugin, New; either of the two
// needs it. A key is there whether or not the agent has its plugin active.
//
// Both change the same Exclusive key at the end of each step, so each step they
// are in conflict, and the one that comes second runs again. It then sees what
// the first one wrote and keeps it: no update is lost, whichever order the two
// are registered in. The package shows what such a conflict costs and does;
// plugins that need not share a value should write entries of a table instead.
package headline
