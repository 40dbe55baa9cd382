package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// Headers of JetStream that the client has no names for, and our own.
const (
	headerBatchID       = "Nats-Batch-Id"
	headerBatchSequence = "Nats-Batch-Sequence"
	headerBatchCommit   = "Nats-Batch-Commit"
	headerExpectSubject = "Nats-Expected-Last-Subject-Sequence-Subject"
	headerState         = "Fixpoint-State"
)

// maxBatch is the number of messages that a server takes as one batch.
const maxBatch = 1000

// message is one that is to be published.
type message struct {
	subject string
	data    []byte
	state   string        // header of our own
	ttl     time.Duration // 0: stays
	// check makes it land only if the last message of the subject, or of checkOn, is
	// expect; 0 is none.
	check   bool
	expect  uint64
	checkOn string
}

func (m message) encode(stream string) *client.Msg {
	msg := client.NewMsg(m.subject)
	msg.Data = m.data
	msg.Header.Set(client.ExpectedStreamHdr, stream)
	if m.state != "" {
		msg.Header.Set(headerState, m.state)
	}
	if m.ttl > 0 {
		msg.Header.Set(jetstream.MsgTTLHeader, m.ttl.String())
	}
	if m.check {
		msg.Header.Set(client.ExpectedLastSubjSeqHdr, strconv.FormatUint(m.expect, 10))
	}
	if m.checkOn != "" {
		msg.Header.Set(headerExpectSubject, m.checkOn)
	}
	return msg
}

// The outcomes of one attempt to publish.
var (
	// errMoved: it did not land, because a subject has another last message.
	errMoved = errors.New("the subject has moved on")
	// errBusy: it did not land, and may if it is sent again as it is.
	errBusy = errors.New("the server was busy")
)

// refusedError is an answer that no repetition changes; nothing landed.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

// lostError: it may have landed or may still land.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// Error codes of JetStream.
const (
	codeInsufficientResources = 10023
	codeStorageExceeded       = 10047
	codeTooLarge              = 10054
	codeStreamNotMatch        = 10060
	codeWrongLast             = 10071
	codeSealed                = 10109
	codeWrongLastConstant     = 10164 // the subject is in process; see nats-server issue 7281
	codeBatchDisabled         = 10174
	codeBatchIncomplete       = 10176
	codeBatchUnsupported      = 10177
	codeBatchTooLarge         = 10199
	codeBatchTooMany          = 10210
)

// publish sends messages once, as one atomic unit, and returns the stream's sequence number
// of the last one.
func (j *Journal) publish(ctx context.Context, messages ...message) (uint64, error) {
	size := 0
	for _, m := range messages {
		size += len(m.data)
	}
	ctx, cancel := j.attempt(ctx, attemptTimeout+time.Duration(size)*time.Microsecond) // 1 MB a second at least
	defer cancel()
	last := messages[len(messages)-1].encode(j.name)
	if len(messages) > 1 {
		select {
		case j.batches <- struct{}{}:
			defer func() { <-j.batches }()
		case <-ctx.Done():
			return 0, errBusy
		}
		id := nuid.Next()
		for i, m := range messages[:len(messages)-1] {
			msg := m.encode(j.name)
			msg.Header.Set(headerBatchID, id)
			msg.Header.Set(headerBatchSequence, strconv.Itoa(i+1))
			if err := j.nc.PublishMsg(msg); err != nil {
				return 0, fmt.Errorf("%w: %w", errBusy, err) // a batch that is not committed does not land
			}
		}
		last.Header.Set(headerBatchID, id)
		last.Header.Set(headerBatchSequence, strconv.Itoa(len(messages)))
		last.Header.Set(headerBatchCommit, "1")
	}
	answer, err := j.nc.RequestMsgWithContext(ctx, last)
	switch {
	case errors.Is(err, client.ErrMaxPayload):
		return 0, &refusedError{err.Error()}
	case err != nil:
		return 0, &lostError{err}
	}
	return readAck(answer.Data, j.name, len(messages))
}

// readAck reads the server's answer to n messages.
func readAck(data []byte, stream string, n int) (uint64, error) {
	var ack struct {
		Error *struct {
			Code    int    `json:"code"`
			ErrCode int    `json:"err_code"`
			Text    string `json:"description"`
		} `json:"error"`
		Stream string `json:"stream"`
		Seq    uint64 `json:"seq"`
		Count  int    `json:"count"`
	}
	if err := json.Unmarshal(data, &ack); err != nil {
		return 0, &lostError{fmt.Errorf("the answer %q is no acknowledgement: %w", data[:min(len(data), 100)], err)}
	}
	if ack.Error == nil {
		if ack.Stream != stream || ack.Seq == 0 || n > 1 && ack.Count != n {
			return 0, &lostError{fmt.Errorf("the acknowledgement %q is none of %d messages of stream %s", data[:min(len(data), 200)], n, stream)}
		}
		return ack.Seq, nil
	}
	text := fmt.Sprintf("%s (error %d)", ack.Error.Text, ack.Error.ErrCode)
	switch ack.Error.ErrCode {
	case codeWrongLast:
		return 0, errMoved
	case codeWrongLastConstant, codeBatchIncomplete, codeBatchTooMany, codeInsufficientResources, codeStorageExceeded:
		return 0, fmt.Errorf("%w: %s", errBusy, text)
	case codeTooLarge, codeStreamNotMatch, codeSealed, codeBatchDisabled, codeBatchUnsupported, codeBatchTooLarge:
		return 0, &refusedError{text}
	}
	return 0, &lostError{errors.New(text)}
}

// confirm learns by a write whether the last message of a subject is the expected one, as
// the leader of the stream and a quorum know it. A leader that was deposed may answer reads
// for a while; it cannot write. Answers that rest on a read are confirmed so, unless the
// read itself proves them.
func (j *Journal) confirm(ctx context.Context, thread, subject string, expect uint64) error {
	_, err := j.publish(ctx, message{
		subject: j.subject(kindConfirm, thread), ttl: confirmTTL,
		check: true, expect: expect, checkOn: subject,
	})
	return err
}

// pause waits before another attempt, longer each time.
func pause(ctx context.Context, try int, after error) {
	from, most := 20*time.Millisecond, 500*time.Millisecond
	if errors.Is(after, errMoved) || errors.Is(after, errBusy) {
		from, most = time.Millisecond, 50*time.Millisecond
	}
	d := min(from<<min(try, 10), most)
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
