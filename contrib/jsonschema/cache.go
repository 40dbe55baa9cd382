package jsonschema

import (
	"container/list"
	"sync"

	upstream "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ddd26017/fixpoint/inference"
)

// entry is what became of a schema.
type entry struct {
	key    inference.JSON
	schema *upstream.Schema
	err    error
}

// cache keeps the entries that were used last. It is safe for concurrent use.
type cache struct {
	size int

	mu    sync.Mutex
	by    map[inference.JSON]*list.Element
	order *list.List // of entries, the one used last in front
}

func newCache(size int) *cache {
	return &cache{size: size, by: map[inference.JSON]*list.Element{}, order: list.New()}
}

func (c *cache) get(key inference.JSON) (entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.by[key]
	if !ok {
		return entry{}, false
	}
	c.order.MoveToFront(at)
	return at.Value.(entry), true
}

func (c *cache) put(e entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.by[e.key]; ok {
		return // somebody else compiled it meanwhile
	}
	c.by[e.key] = c.order.PushFront(e)
	for c.order.Len() > max(0, c.size) {
		last := c.order.Back()
		c.order.Remove(last)
		delete(c.by, last.Value.(entry).key)
	}
}
