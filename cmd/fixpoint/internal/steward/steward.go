// Package steward holds the example agent, so that the command has one to run
// wherever it is installed. The files are copies of those in examples/steward,
// because a module cannot embed what lies outside of it; a test compares the two.
package steward

import "embed"

// Name is the name of the spec in Files.
const Name = "agent.yaml"

// Files holds the spec and the script that it names.
//
//go:generate cp ../../../../examples/steward/agent.yaml ../../../../examples/steward/script.json .
//go:embed agent.yaml script.json
var Files embed.FS
