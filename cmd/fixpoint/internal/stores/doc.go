// Package stores finds and opens what --store names: a folder with a file, which one
// process uses at a time, or a database or stream that many processes share.
package stores
