// Package audit is a plugin that writes down what an agent did: one JSON line
// for each tool call, whatever became of it, and one for the end of each run.
//
//	log := audit.New(audit.Options{Dir: dir})
//
// Lines are written by an effect, so what is in the file was committed before,
// and a full disk is reported without stopping the run. With a journal that has an
// outbox no line is lost: one that could not be written is tried again by
// Engine.DeliverOutbox, also in a later process. It is then the same line but for the
// time, with the same id, and may be there twice: readers count ids. The section "audit" of
// an agent spec names the file, below the directory:
//
//	"audit": {"path": "logs/audit.jsonl"}
//
// Other plugins may emit Record with entries of their own. A line holds no
// arguments and no results, which may be secret: the fingerprint tells whether
// two calls were the same.
package audit
