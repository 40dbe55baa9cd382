// Package specfile reads agent specs from YAML and JSON files. YAML is turned
// into the engine's own tree of values with positions, so both forms are checked
// by the same rules and get the same errors, with line and column.
package specfile
