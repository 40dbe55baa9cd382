// Package listing writes what a store holds as text for people: its threads, the commits
// of one, and what differs between two of those. The subcommands and the slash commands
// of a chat share it.
package listing
