package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// walk reads a whole file page by page, and finds everything in which it differs from
// what bbolt writes: pages reached twice, or both free and reached, or neither, page
// headers, the places and the order of keys. Since bbolt packs its pages without gaps,
// there is one right place for every key and value.
type walk struct {
	file   io.ReaderAt
	path   string
	meta   meta
	seen   []uint8 // by page: 0, isReached or isFree
	pages  int
	free   int
	values func(bucket []byte, e element) // called for each value outside the root
	roots  map[string]int64               // where each bucket begins
	faults []*CorruptError
}

const (
	isReached = 1
	isFree    = 2
	maxDepth  = 32   // of pages; bbolt's trees are far flatter
	maxFaults = 1000 // more are not worth reading
)

// element is an entry of a page.
type element struct {
	key, value []byte
	child      uint64 // of a branch
	bucket     bool   // of a leaf: the value is a bucket
	offset     int64  // of the key, in the file
}

func newWalk(file io.ReaderAt, path string, m meta, values func(bucket []byte, e element)) *walk {
	return &walk{file: file, path: path, meta: m, seen: make([]uint8, m.pages), values: values, roots: map[string]int64{}}
}

func (w *walk) fault(offset int64, bucket []byte, reason string, args ...any) {
	if len(w.faults) < maxFaults {
		w.faults = append(w.faults, &CorruptError{Path: w.path, Bucket: string(bucket), Offset: offset, Reason: fmt.Sprintf(reason, args...)})
	}
}

// all walks the file. What it finds is in faults.
func (w *walk) all() {
	w.seen[0], w.seen[1] = isReached, isReached
	names := map[string]bool{}
	w.page(w.meta.root, nil, nil, nil, 0, func(e element) {
		if !e.bucket {
			w.fault(e.offset, nil, "there is a value where only buckets are to be")
			return
		}
		names[string(e.key)] = true
		w.bucket(e)
	})
	for _, name := range buckets {
		if !names[string(name)] {
			w.fault(w.at(w.meta.root), name, "the bucket is missing")
		}
		delete(names, string(name))
	}
	for name := range names {
		w.fault(w.at(w.meta.root), []byte(name), "the bucket is not one of this store's")
	}
	w.freelist()
	for id, state := range w.seen {
		if state == 0 {
			w.fault(w.at(uint64(id)), nil, "page %d is neither in use nor free", id)
		}
	}
}

func (w *walk) at(page uint64) int64 { return int64(page) * int64(w.meta.pageSize) }

// bucket walks one bucket of the root.
func (w *walk) bucket(e element) {
	name := bytes.Clone(e.key)
	w.roots[string(name)] = e.offset
	each := func(e element) {
		if e.bucket {
			w.fault(e.offset, name, "there is a bucket where only values are to be")
			return
		}
		w.values(name, e)
	}
	if len(e.value) < bucketSize {
		w.fault(e.offset, name, "the bucket is shorter than its header")
		return
	}
	if root := binary.NativeEndian.Uint64(e.value); root != 0 {
		w.roots[string(name)] = w.at(root)
		w.page(root, name, nil, nil, 0, each)
		return
	}
	inline := e.value[bucketSize:]
	offset := e.offset + int64(len(e.key)+bucketSize)
	if len(inline) < pageHeader || binary.NativeEndian.Uint16(inline[8:]) != flagLeaf {
		w.fault(offset, name, "the bucket holds no leaf page")
		return
	}
	// Such a page has no number of its own, no overflow, and exactly the room it needs.
	if binary.NativeEndian.Uint64(inline) != 0 || binary.NativeEndian.Uint32(inline[12:]) != 0 {
		w.fault(offset, name, "the header of the bucket's page makes no sense")
		return
	}
	elements, reason := parsePage(inline, offset)
	if reason != "" {
		w.fault(offset, name, "%s", reason)
		return
	}
	end := pageHeader
	for _, e := range elements {
		end += elementSize + len(e.key) + len(e.value)
	}
	if end != len(inline) {
		w.fault(offset, name, "the bucket's page has %d bytes and uses %d", len(inline), end)
		return
	}
	w.leaf(elements, name, nil, nil, each)
}

// page walks a page and all below it. All keys have to be from low up to but not
// including high; nil is no bound.
func (w *walk) page(id uint64, bucket, low, high []byte, depth int, each func(element)) {
	offset := w.at(id)
	body, ok := w.read(id, bucket)
	if !ok {
		return
	}
	if depth > maxDepth {
		w.fault(offset, bucket, "the tree is deeper than %d pages", maxDepth)
		return
	}
	elements, reason := parsePage(body, offset)
	flags := binary.NativeEndian.Uint16(body[8:])
	switch {
	case reason != "":
		w.fault(offset, bucket, "%s", reason)
	case flags == flagLeaf:
		if len(elements) == 0 && depth > 0 {
			w.fault(offset, bucket, "the leaf is empty")
		}
		w.leaf(elements, bucket, low, high, each)
	case flags != flagBranch:
		w.fault(offset, bucket, "the page is of kind %#x, which has no place here", flags)
	case len(elements) == 0:
		w.fault(offset, bucket, "the branch is empty")
	default:
		w.order(elements, bucket, low, high)
		for i, e := range elements {
			end := high
			if i+1 < len(elements) {
				end = elements[i+1].key
			}
			w.page(e.child, bucket, e.key, end, depth+1, each)
		}
	}
}

func (w *walk) leaf(elements []element, bucket, low, high []byte, each func(element)) {
	w.order(elements, bucket, low, high)
	for _, e := range elements {
		each(e)
	}
}

func (w *walk) order(elements []element, bucket, low, high []byte) {
	for i, e := range elements {
		switch {
		case i > 0 && bytes.Compare(elements[i-1].key, e.key) >= 0:
			w.fault(e.offset, bucket, "the keys are not in order")
		case low != nil && bytes.Compare(e.key, low) < 0, high != nil && bytes.Compare(e.key, high) >= 0:
			w.fault(e.offset, bucket, "the key belongs on another page")
		}
	}
}

// read reads a page with its overflow and marks it as reached.
func (w *walk) read(id uint64, bucket []byte) (body []byte, ok bool) {
	offset := w.at(id)
	if id < 2 || id >= w.meta.pages {
		w.fault(-1, bucket, "there is a reference to page %d of %d", id, w.meta.pages)
		return nil, false
	}
	header := make([]byte, pageHeader)
	if _, err := w.file.ReadAt(header, offset); err != nil {
		w.fault(offset, bucket, "the page cannot be read: %v", err)
		return nil, false
	}
	overflow := uint64(binary.NativeEndian.Uint32(header[12:]))
	switch self := binary.NativeEndian.Uint64(header); {
	case self != id:
		w.fault(offset, bucket, "page %d says that it is page %d", id, self)
		return nil, false
	case overflow >= w.meta.pages-id:
		w.fault(offset, bucket, "page %d has %d more pages, and there are %d in all", id, overflow, w.meta.pages)
		return nil, false
	}
	for page := id; page <= id+overflow; page++ {
		if w.seen[page] != 0 {
			w.fault(w.at(page), bucket, "page %d is used twice", page)
			return nil, false
		}
		w.seen[page] = isReached
	}
	w.pages += int(overflow) + 1
	body = make([]byte, (overflow+1)*uint64(w.meta.pageSize))
	if _, err := w.file.ReadAt(body, offset); err != nil {
		w.fault(offset, bucket, "the page cannot be read: %v", err)
		return nil, false
	}
	return body, true
}

// parsePage reads the elements of a branch or leaf page.
func parsePage(page []byte, offset int64) (elements []element, reason string) {
	order := binary.NativeEndian
	leaf := order.Uint16(page[8:]) == flagLeaf
	count := int(order.Uint16(page[10:]))
	next := pageHeader + count*elementSize // where the next key has to be
	if next > len(page) {
		return nil, "the page ends in its table of elements"
	}
	elements = make([]element, 0, count)
	for i := range count {
		at := pageHeader + i*elementSize
		head := page[at : at+elementSize]
		var e element
		var pos, keySize, valueSize uint32
		if leaf {
			flags := order.Uint32(head)
			pos, keySize, valueSize = order.Uint32(head[4:]), order.Uint32(head[8:]), order.Uint32(head[12:])
			if flags > 1 {
				return nil, fmt.Sprintf("element %d has the flags %#x", i, flags)
			}
			e.bucket = flags == 1
		} else {
			pos, keySize, e.child = order.Uint32(head), order.Uint32(head[4:]), order.Uint64(head[8:])
		}
		if at+int(pos) != next || keySize == 0 || uint64(next)+uint64(keySize)+uint64(valueSize) > uint64(len(page)) {
			return nil, fmt.Sprintf("element %d of %d is not where it has to be", i, count)
		}
		e.offset = offset + int64(next)
		e.key = page[next : next+int(keySize)]
		e.value = page[next+int(keySize) : next+int(keySize)+int(valueSize)]
		next += int(keySize) + int(valueSize)
		elements = append(elements, e)
	}
	return elements, ""
}

// freelist reads the list of free pages.
func (w *walk) freelist() {
	id := w.meta.freelist
	if id == noFreelist {
		w.fault(-1, nil, "the file has no list of free pages")
		return
	}
	body, ok := w.read(id, nil)
	if !ok {
		return
	}
	order := binary.NativeEndian
	offset := w.at(id)
	if order.Uint16(body[8:]) != flagFreelist {
		w.fault(offset, nil, "page %d is not the list of free pages", id)
		return
	}
	list := body[pageHeader:]
	count := uint64(order.Uint16(body[10:]))
	if count == 0xffff {
		count, list = order.Uint64(list), list[8:]
	}
	if count > uint64(len(list)/8) {
		w.fault(offset, nil, "the list of free pages is longer than its pages")
		return
	}
	for i := range count {
		page := order.Uint64(list[i*8:])
		if page < 2 || page >= w.meta.pages || w.seen[page] != 0 {
			w.fault(offset, nil, "page %d is in the list of free pages and cannot be free", page)
			return
		}
		w.seen[page] = isFree
		w.free++
	}
}
