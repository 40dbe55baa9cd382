package worker

import "slices"

// turns says whose turn it is: each has turns in proportion to its weight, and whoever
// comes back has neither saved nor lost any.
type turns[K comparable] struct {
	used map[K]float64 // turns had, over the weight
	now  float64
}

// next returns the one of list, which is not empty, whose turn it is; of several the first.
func (t *turns[K]) next(list []K) K {
	at := func(k K) float64 { return max(t.used[k], t.now) }
	best := list[0]
	for _, k := range list[1:] {
		if at(k) < at(best) {
			best = k
		}
	}
	return best
}

// took counts a turn of k.
func (t *turns[K]) took(k K, weight int) {
	if t.used == nil {
		t.used = map[K]float64{}
	}
	t.now = max(t.used[k], t.now)
	t.used[k] = t.now + 1/float64(max(weight, 1))
	for old, used := range t.used {
		if used < t.now { // as good as new
			delete(t.used, old)
		}
	}
}

// order has the turns of lanes: priorities first, then the tenants of one.
type order struct {
	priorities turns[Priority]
	tenants    map[Priority]*turns[string]
	weights    map[Priority]int
	weight     func(tenant string) int
}

func (o *order) next(lanes []Lane) Lane {
	var ps []Priority
	for _, p := range []Priority{High, Normal, Low} {
		if slices.ContainsFunc(lanes, func(l Lane) bool { return l.Priority == p }) {
			ps = append(ps, p)
		}
	}
	p := o.priorities.next(ps)
	var tenants []string
	for _, l := range lanes {
		if l.Priority == p {
			tenants = append(tenants, l.Tenant)
		}
	}
	slices.Sort(tenants)
	return Lane{p, o.of(p).next(tenants)}
}

func (o *order) took(l Lane) {
	o.priorities.took(l.Priority, o.weights[l.Priority])
	weight := 1
	if o.weight != nil {
		weight = o.weight(l.Tenant)
	}
	o.of(l.Priority).took(l.Tenant, weight)
}

func (o *order) of(p Priority) *turns[string] {
	if o.tenants == nil {
		o.tenants = map[Priority]*turns[string]{}
	}
	if o.tenants[p] == nil {
		o.tenants[p] = &turns[string]{}
	}
	return o.tenants[p]
}
