package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ddd26017/fixpoint/store"
)

// ErrNotPrimary is returned for a server that takes no writes: a standby, one that is set
// to read-only, or a former primary.
var ErrNotPrimary = errors.New("postgres: the server is no primary that takes writes")

// errWaitCancelled stands for an answer that came with a warning: the server says so when
// a commit did not wait for its standbys.
var errWaitCancelled = errors.New("postgres: the server warned that the commit did not wait for its standbys")

// outcome says what is known after a statement.
type outcome int

const (
	executed    outcome = iota // the server answered
	notExecuted                // it had no effect, and may have one when it is sent again
	unknown                    // nobody knows
	refused                    // it had no effect, and to send it again helps nothing
)

// The SQLSTATEs that matter.
const (
	codeUnique      = "23505"
	codeReadOnly    = "25006"
	codeCancelled   = "57014"
	codeTooMany     = "53300"
	codeDataDamage  = "XX001"
	codeIndexDamage = "XX002"
)

// classify tells what became of a statement that was sent over a connection.
func classify(err error) outcome {
	var answer *pgconn.PgError
	switch {
	case err == nil:
		return executed
	case errors.As(err, &answer) && (answer.SeverityUnlocalized == "FATAL" || answer.SeverityUnlocalized == "PANIC"):
		// The connection ended. The commit may have been before that.
		return unknown
	case errors.As(err, &answer):
		// The transaction was rolled back.
		switch class := answer.Code[:min(2, len(answer.Code))]; {
		case class == "40", class == "08", answer.Code == codeReadOnly, answer.Code == codeCancelled, answer.Code == "55P03",
			strings.HasPrefix(answer.Code, "57P"):
			return notExecuted
		}
		return refused
	case pgconn.SafeToRetry(err):
		return notExecuted
	}
	return unknown
}

// classifyConnect tells whether it helps to connect again.
func classifyConnect(err error) outcome {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		switch class := answer.Code[:min(2, len(answer.Code))]; {
		case class == "28", class == "3D", class == "3F", class == "42": // not let in, no such database, no right
			return refused
		}
	}
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) || errors.Is(err, store.ErrClosed) {
		return refused
	}
	return notExecuted
}

// translate makes the store's errors of those of the server that are about what it keeps.
func (j *Journal) translate(err error, thread string, revision uint64) error {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return err
	}
	switch {
	case answer.Code == codeDataDamage, answer.Code == codeIndexDamage:
		return errors.Join(&CorruptError{Schema: j.schema, Table: answer.TableName, Thread: thread, Revision: revision, Reason: "the server found damage"}, err)
	case answer.Code == codeUnique && answer.SchemaName == j.schema:
		// Rows are added only together with the move of the thread's revision.
		return errors.Join(&CorruptError{Schema: j.schema, Table: answer.TableName, Thread: thread, Revision: revision, Reason: "the thread has newer rows than its own row says"}, err)
	}
	return err
}

func errClosed() error {
	return fmt.Errorf("postgres: the store was closed: %w", store.ErrClosed)
}

func errFenced(thread string, epoch, have uint64) error {
	return fmt.Errorf("postgres: thread %s is at epoch %d, not at %d; acquire its lease again: %w", thread, have, epoch, store.ErrFenced)
}

// errEnded says that a call's context ended before it had any effect.
func errEnded(ctx context.Context) error {
	return fmt.Errorf("postgres: not done: %w", context.Cause(ctx))
}
