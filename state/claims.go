package state

import "cmp"

// entryTouch is the part of an entry update that conflict checks need.
type entryTouch interface {
	// changedSince returns the first touched entry of c that changed after
	// revision since, and by whom.
	changedSince(c cell, since uint64) (entry any, by string, changed bool)
	// taken returns the first touched entry that an accepted batch holds, and
	// that batch. alone says that the update wants its entries to itself.
	taken(c claims, alone bool) (entry any, batch int32, taken bool)
	// claim records the touch for batch and returns the claims, which it makes
	// for about size entries if there are none yet.
	claim(c claims, batch int32, alone bool, size int) claims
}

// claims is an *entryClaims of the table's key type, or nil.
type claims any

// entryClaims records which batch last touched an entry, and which has it for
// itself. Batches count from 1.
type entryClaims[K cmp.Ordered] struct{ by map[K]entryClaim }

type entryClaim struct{ any, alone int32 }

func (o *entryOp[K, V]) changedSince(c cell, since uint64) (any, string, bool) {
	e := entriesOf[K, V](c)
	if o.many == nil {
		at := e.changed(o.one)
		if at.revision() <= since {
			return nil, "", false
		}
		return o.one, at.owner, true
	}
	for _, k := range o.many {
		if at := e.changed(k); at.revision() > since {
			return k, at.owner, true
		}
	}
	return nil, "", false
}

func (o *entryOp[K, V]) taken(c claims, alone bool) (any, int32, bool) {
	held, ok := c.(*entryClaims[K])
	if !ok {
		return nil, 0, false
	}
	if o.many == nil {
		if batch := held.by[o.one].against(alone); batch != 0 {
			return o.one, batch, true
		}
		return nil, 0, false
	}
	for _, k := range o.many {
		if batch := held.by[k].against(alone); batch != 0 {
			return k, batch, true
		}
	}
	return nil, 0, false
}

func (c entryClaim) against(alone bool) int32 {
	if alone {
		return c.any
	}
	return c.alone
}

func (o *entryOp[K, V]) claim(c claims, batch int32, alone bool, size int) claims {
	held, ok := c.(*entryClaims[K])
	if !ok {
		held = &entryClaims[K]{by: make(map[K]entryClaim, size)}
	}
	if o.many == nil {
		held.claim(o.one, batch, alone)
	}
	for _, k := range o.many {
		held.claim(k, batch, alone)
	}
	return held
}

func (c *entryClaims[K]) claim(k K, batch int32, alone bool) {
	was := c.by[k]
	was.any = batch
	if alone {
		was.alone = batch
	}
	c.by[k] = was
}
