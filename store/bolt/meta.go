package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
)

// The file format of bbolt, as far as it is needed to look at a file without mapping
// it: numbers have the byte order of the machine.
const (
	metaMagic   = 0xED0CDAED
	metaVersion = 2
	metaSize    = 64

	pageHeader  = 16 // id 8, flags 2, count 2, overflow 4
	elementSize = 16 // branch: pos 4, key size 4, page 8; leaf: flags 4, pos 4, key size 4, value size 4
	bucketSize  = 16 // root page 8, sequence 8

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10

	noFreelist = ^uint64(0)

	minPageSize = 1 << 10
	maxPageSize = 1 << 24
)

// meta is what a meta page says.
type meta struct {
	pageSize int
	root     uint64 // page of the root bucket
	freelist uint64
	pages    uint64 // pages in use are below this
	txid     uint64
}

// parseMeta reads a meta page; reason says why it is not one.
func parseMeta(page []byte) (m meta, reason string) {
	if len(page) < pageHeader+metaSize {
		return m, "the file ends in the meta page"
	}
	p := page[pageHeader : pageHeader+metaSize]
	order := binary.NativeEndian
	sum := fnv.New64a()
	_, _ = sum.Write(p[:metaSize-8])
	switch {
	case order.Uint32(p) != metaMagic:
		return m, "the meta page has no magic number"
	case order.Uint32(p[4:]) != metaVersion:
		return m, fmt.Sprintf("the meta page has version %d, want %d", order.Uint32(p[4:]), metaVersion)
	case order.Uint64(p[56:]) != sum.Sum64():
		return m, "the checksum of the meta page does not fit"
	}
	m = meta{
		pageSize: int(order.Uint32(p[8:])),
		root:     order.Uint64(p[16:]),
		freelist: order.Uint64(p[32:]),
		pages:    order.Uint64(p[40:]),
		txid:     order.Uint64(p[48:]),
	}
	if m.pageSize < minPageSize || m.pageSize > maxPageSize || m.pageSize&(m.pageSize-1) != 0 {
		return m, fmt.Sprintf("the meta page has a page size of %d", m.pageSize)
	}
	return m, ""
}

// readMeta finds the meta page that bbolt will use: the valid one of the newer
// transaction. It also returns what is wrong with the other one, if anything.
func readMeta(file io.ReaderAt, size int64, path string) (m meta, other, err *CorruptError) {
	damage := func(offset int64, reason string) *CorruptError {
		return &CorruptError{Path: path, Offset: offset, Reason: reason}
	}
	first, reason0 := metaAt(file, 0)
	if reason0 == "" {
		second, reason1 := metaAt(file, int64(first.pageSize))
		switch {
		case reason1 != "":
			return first, damage(int64(first.pageSize), reason1), checkSize(first, size, path)
		case second.pageSize != first.pageSize:
			return first, nil, damage(int64(first.pageSize), "the two meta pages have different page sizes")
		case second.txid > first.txid:
			return second, nil, checkSize(second, size, path)
		}
		return first, nil, checkSize(first, size, path)
	}
	for pageSize := int64(minPageSize); pageSize <= maxPageSize && pageSize < size; pageSize *= 2 {
		if second, reason := metaAt(file, pageSize); reason == "" && int64(second.pageSize) == pageSize {
			return second, damage(0, reason0), checkSize(second, size, path)
		}
	}
	return m, nil, damage(0, reason0+", and there is no second one")
}

func metaAt(file io.ReaderAt, offset int64) (meta, string) {
	page := make([]byte, pageHeader+metaSize)
	n, err := file.ReadAt(page, offset)
	if err != nil && err != io.EOF {
		return meta{}, "the meta page cannot be read: " + err.Error()
	}
	return parseMeta(page[:n])
}

// checkSize finds a file that was cut off: a page beyond its end would be a fault
// signal once the file is mapped.
func checkSize(m meta, size int64, path string) *CorruptError {
	if m.pages < 2 || m.pages > uint64(size)/uint64(m.pageSize) {
		return &CorruptError{Path: path, Offset: size, Reason: fmt.Sprintf(
			"the file has %d bytes, and its meta page tells of %d pages of %d", size, m.pages, m.pageSize)}
	}
	return nil
}
