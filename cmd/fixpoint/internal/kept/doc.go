// Package kept is the store of the command: a folder with a file of threads, what
// is needed to go on with each of them in another process, and the questions that
// they wait for.
//
// One process has a store open at a time, for as long as its run lasts.
package kept
