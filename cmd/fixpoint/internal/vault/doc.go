// Package vault keeps the secrets that people give to runs of the command: one file
// for each in a folder of the store, which only the user of the process can read.
//
// The folder has mode 0700 and the files 0600 where the system knows modes. Secrets are
// not encrypted: who may read the user's files may read them. A file is there from the
// answer until the tool call that it is for has its result, or the thread is deleted: the
// latter for a result that hands the handle on, as those of the tool ask_user do.
package vault
