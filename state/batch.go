package state

// Batch is what one author wants to change: all of it happens, or nothing.
type Batch struct {
	// Owner names the author in errors, commits and conflicts.
	Owner string
	// Part names what of the owner it is, such as a hook, for traces.
	Part string
	// Base is the snapshot that the updates were decided on. An exclusive
	// touch of something that changed after it is a conflict. With a nil Base
	// the batch is good on any state.
	Base *Snapshot
	// Updates are applied in order. Several may touch one key.
	Updates []Update
	// Reads are keys whose change after Base is a conflict too, though the
	// batch does not write them. Declare what the updates were decided on to
	// exclude write skew.
	Reads []AnyKey
	// Required says that nothing of the call is to be committed if this batch is
	// rejected.
	Required bool
	// Note is handed to Config.Persist if the batch is accepted. The store does not
	// look at it.
	Note any

	quiet bool // not persisted, since it comes from where things are kept
}

// Rejection says why a batch of a commit did not take part in it.
type Rejection struct {
	Index int            // position among the batches of the call
	Err   *ConflictError // what it lost, and to whom
}

// Result is the outcome of a commit.
type Result struct {
	// Snapshot is the state after the commit; when nothing was committed, the
	// state that the batches were rejected on.
	Snapshot *Snapshot
	// Before is the state that the commit changed, nil when nothing was committed.
	Before *Snapshot
	// Committed is false when there was no accepted update, so that the
	// revision stayed as it was.
	Committed bool
	// Rejected lists the batches that lost a conflict, in call order.
	Rejected []Rejection
}
