package postgres

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ddd26017/fixpoint/store"
)

// notifySQL sends all parts of a notice in one transaction, so that they come one after the
// other. It does not wait for the disk, because notices do not outlive anything.
const notifySQL = `WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true) AS commit)
	SELECT pg_notify($1, p.part) FROM quick, unnest($2::text[]) WITH ORDINALITY AS p (part, n) WHERE quick.commit = 'off' ORDER BY p.n`

// A part is text of less than 8000 bytes, so it is made of at most 5997 bytes.
const partSize = 5997

// noticeVersion is the first byte of each part.
const noticeVersion = 1

// partHeader: version, id of the notice, number of the part, number of parts.
const partHeader = 1 + 8 + 2 + 2

// channelOf makes the name of the channel for a topic of a schema. Any bytes can be a
// topic, and a channel's name has at most 63.
func channelOf(schema, topic string) string {
	sum := sha256.New()
	sum.Write([]byte(schema))
	sum.Write([]byte{0}) // a schema has no zero byte
	sum.Write([]byte(topic))
	return "fixpoint_" + hex.EncodeToString(sum.Sum(nil)[:16])
}

// encodeNotice cuts a notice into the parts that are sent. The text is the topic and the
// data, so that a listener can tell topics apart whose channels have one name.
func encodeNotice(id uint64, topic string, data []byte) []string {
	text := binary.AppendUvarint(make([]byte, 0, len(topic)+len(data)+4), uint64(len(topic)))
	text = append(append(text, topic...), data...)
	const room = partSize - partHeader
	count := (len(text) + room - 1) / room
	var parts []string
	for n := range count {
		piece := text[n*room : min((n+1)*room, len(text))]
		part := binary.BigEndian.AppendUint64([]byte{noticeVersion}, id)
		part = binary.BigEndian.AppendUint16(part, uint16(n))
		part = binary.BigEndian.AppendUint16(part, uint16(count))
		parts = append(parts, base64.RawStdEncoding.EncodeToString(append(part, piece...)))
	}
	return parts
}

// puzzle puts the parts of notices together. They come in order, those of one notice with
// none between them; what does not fit is dropped.
type puzzle struct {
	id    uint64
	next  uint16
	count uint16
	text  []byte
}

// add takes a part. It returns a notice when it is whole.
func (p *puzzle) add(part string) (topic string, data []byte, whole bool) {
	raw, err := base64.RawStdEncoding.DecodeString(part)
	if err != nil || len(raw) < partHeader || raw[0] != noticeVersion {
		return "", nil, false
	}
	id, n, count := binary.BigEndian.Uint64(raw[1:]), binary.BigEndian.Uint16(raw[9:]), binary.BigEndian.Uint16(raw[11:])
	switch {
	case n == 0:
		*p = puzzle{id: id, count: count}
	case id != p.id || n != p.next || count != p.count:
		*p = puzzle{}
		return "", nil, false
	}
	p.text = append(p.text, raw[partHeader:]...)
	p.next++
	if p.next < p.count {
		return "", nil, false
	}
	text := p.text
	*p = puzzle{}
	size, used := binary.Uvarint(text)
	if used <= 0 || size > uint64(len(text)-used) {
		return "", nil, false
	}
	return string(text[used : used+int(size)]), text[used+int(size):], true
}

// Notify implements [store.Notifier]. It is a transaction of its own that waits for no
// disk; the server sends what it has committed.
func (j *Journal) Notify(ctx context.Context, topic string, data []byte) error {
	if err := checkName("topic", topic); err != nil {
		return err
	}
	if len(data) > store.MaxNotice {
		return fmt.Errorf("postgres: a notice of %d bytes, and the limit is %d: %w", len(data), store.MaxNotice, store.ErrTooLarge)
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	parts := encodeNotice(binary.BigEndian.Uint64(id[:]), topic, data)
	channel := channelOf(j.schema, topic)
	err := j.call(ctx, noticing, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, j.sql.notify, channel, parts)
		return err
	})
	if err != nil {
		return j.translate(err, "", 0)
	}
	return nil
}
