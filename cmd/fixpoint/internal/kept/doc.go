// Package kept is the store of the command: threads, what is needed to go on with each of
// them in another process, and the questions that they wait for.
//
// A store is a folder with a file, which one process has open at a time, for as long as
// its run lasts; or it is a database or a stream that processes share.
package kept
