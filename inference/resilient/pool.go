package resilient

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ddd26017/fixpoint/inference"
)

// Pool is several models that stand in for each other. They are asked in order until one answers; an error whose class
// says that another model would not help either (see [Class.Elsewhere]) ends the search, and so does the end of the
// context. If none answers, the error is a [*Failure] that joins the errors of all that were asked: under [errors.Is] it
// matches each. Its class is Cancelled if the context ended, else that of an error after which asking again may help,
// if there is one, with the shortest RetryAfter of those, else that of the last.
//
// The usage of an answer is that of all members that were asked.
type Pool struct {
	// Members are the models, the preferred first. Their names must differ.
	Members []Member
	// Route, if not nil, says which members to ask for a request, in which order, by name. It must not change the
	// request. No name means all members in order; a name that is unknown is an error of class BadRequest.
	Route func(ctx context.Context, r inference.Request) []string
	// Sticky, if not nil, says what a request belongs to, such as a run or a thread. The member that answered the last
	// request of the same key is asked first if Route lets it be asked at all, so that what a provider cached for the
	// conversation is of use. "" is no key. Some hundreds of keys are remembered; those longest unused are forgotten.
	Sticky func(ctx context.Context, r inference.Request) string
	// Recovery says what to do when a member's stream breaks after some of the answer was passed on. The default is to
	// pass on the failure, since another model would not go on with the same words. Prefill and Ask have the next
	// member go on.
	Recovery Recovery
	// Observe, if not nil, is told after each member that was asked. It may be called by many goroutines at once.
	Observe func(ctx context.Context, a Asked)
}

// Member is a model of a [Pool].
type Member struct {
	// Name is what Route, observers and errors call it.
	Name  string
	Model inference.Model
	// Override is laid over the requests that this member gets. Its UpstreamModel is the name by which the provider
	// knows the model.
	Override inference.Override
}

// Asked says how it went with a member of a pool.
type Asked struct {
	// Member is its name, and Model the name of the model that it was asked for.
	Member, Model string
	// Err is nil if it answered.
	Err error
	// Next is the member that is asked now; "" if none is.
	Next string
}

// NewPool returns the model that p makes, whose later changes do not matter to it. It streams if any member does; the
// answer of one that does not then comes in one piece. [inference.Response.Model] tells which model served, even where
// that one does not say so itself. The error says what is wrong with p.
func NewPool(p Pool) (inference.Model, error) {
	p.Members = slices.Clone(p.Members)
	var faults []error
	seen := map[string]bool{}
	streams := false
	for i, m := range p.Members {
		switch where := "resilient: Pool.Members[" + strconv.Itoa(i) + "]"; {
		case m.Name == "":
			faults = append(faults, errors.New(where+" has no name"))
		case seen[m.Name]:
			faults = append(faults, fmt.Errorf("%s has the name %q of an earlier one", where, m.Name))
		case m.Model == nil:
			faults = append(faults, fmt.Errorf("%s, %q, has no model", where, m.Name))
		}
		if err := m.Override.Validate(); err != nil {
			faults = append(faults, fmt.Errorf("resilient: override of member %q: %w", m.Name, err))
		}
		seen[m.Name] = true
		_, ok := m.Model.(inference.Streamer)
		streams = streams || ok
	}
	faults = append(faults, check("Pool", field{"Members", len(p.Members) > 0, "at least one"}, p.Recovery.valid()))
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	q := &pool{Pool: p}
	if !streams {
		return inference.ModelFunc(q.generate), nil
	}
	return streaming{q.generate, q.stream}, nil
}

// pool is a checked Pool.
type pool struct {
	Pool
	served memory
}

func (p *pool) generate(ctx context.Context, r inference.Request) (inference.Response, error) {
	var resp inference.Response
	var spent inference.Usage
	err := p.search(ctx, r, func(m Member, name string) (began, final bool, err error) {
		resp, err = m.Model.Generate(ctx, m.Override.Apply(r.Clone()))
		spent = spent.Add(resp.Usage)
		if resp.Model == "" {
			resp.Model = name
		}
		return false, false, err
	})
	resp.Usage = spent
	return resp, err
}

func (p *pool) stream(ctx context.Context, r inference.Request) iter.Seq2[inference.Chunk, error] {
	return func(yield func(inference.Chunk, error) bool) {
		y := relay{yield: yield, holds: p.Recovery.How != Fail}
		err := p.search(ctx, r, func(m Member, name string) (began, final bool, err error) {
			req, known := p.Recovery.request(r, y.text.String())
			resp, err := y.walk(m.stream(ctx, req), known)
			if err != nil {
				return y.began, y.left || y.began && !y.holds || errors.Is(err, ErrDiverged), err
			}
			y.release()
			if resp.Model == "" {
				y.send(inference.Chunk{Model: name})
			}
			return true, true, nil
		})
		y.end(err)
	}
}

// stream streams the member's answer. One that cannot stream leaves nothing but its usage when it fails.
func (m Member) stream(ctx context.Context, r inference.Request) iter.Seq2[inference.Chunk, error] {
	r = m.Override.Apply(r)
	if s, ok := m.Model.(inference.Streamer); ok {
		return s.Stream(ctx, r)
	}
	return func(yield func(inference.Chunk, error) bool) {
		resp, err := m.Model.Generate(ctx, r)
		if err != nil {
			yield(inference.Chunk{Usage: resp.Usage}, err)
			return
		}
		chunks(resp)(yield)
	}
}

// search calls ask with one member after the other until one answers, or its error is final, or there is no hope.
func (p *pool) search(ctx context.Context, r inference.Request, ask func(m Member, name string) (began, final bool, err error)) error {
	order, err := p.order(ctx, r)
	if err != nil {
		return err
	}
	key := ""
	if p.Sticky != nil {
		key = p.Sticky(ctx, r)
	}
	served := p.served.get(key)
	if i := slices.IndexFunc(order, func(m Member) bool { return m.Name == served }); i > 0 {
		first := order[i]
		order = slices.Insert(slices.Delete(order, i, i+1), 0, first)
	}
	total := Failure{Model: r.Model}
	var all []error
	for i, m := range order {
		name := m.Override.Apply(r).Model
		began, final, err := ask(m, name)
		last := err == nil || final || i+1 == len(order) || ctx.Err() != nil || !ClassOf(err).Elsewhere()
		told := Asked{Member: m.Name, Model: name, Err: err}
		if !last {
			told.Next = order[i+1].Name
		}
		if p.Observe != nil {
			p.Observe(ctx, told)
		}
		if err == nil {
			p.served.put(key, m.Name)
			return nil
		}
		all = append(all, fmt.Errorf("member %q: %w", m.Name, err))
		total.add(err)
		if total.Partial = total.Partial || began; last {
			break
		}
	}
	if ctx.Err() != nil {
		total.Class = Cancelled
	}
	total.Err = fmt.Errorf("no member of the pool answered: %w", errors.Join(all...))
	return &total
}

// order returns the members to ask, in a slice of its own.
func (p *pool) order(ctx context.Context, r inference.Request) ([]Member, error) {
	var names []string
	if p.Route != nil {
		names = p.Route(ctx, r)
	}
	if len(names) == 0 {
		return slices.Clone(p.Members), nil
	}
	var order []Member
	for i, name := range names {
		at := slices.IndexFunc(p.Members, func(m Member) bool { return m.Name == name })
		if at < 0 {
			return nil, &Failure{Class: BadRequest, Model: r.Model, Err: fmt.Errorf("Pool.Route names %q, which is no member of the pool", name)}
		}
		if !slices.Contains(names[:i], name) {
			order = append(order, p.Members[at])
		}
	}
	return order, nil
}

// add makes the class of f that of err, unless f's gives more hope, and its RetryAfter the shortest that leads on.
func (f *Failure) add(err error) {
	class := ClassOf(err)
	var after time.Duration
	if one := (*Failure)(nil); errors.As(err, &one) {
		after = one.RetryAfter
	}
	switch {
	case class.Again() && f.Class.Again():
		if after < f.RetryAfter {
			f.Class, f.RetryAfter = class, after
		}
	case class.Again() || !f.Class.Again():
		f.Class, f.RetryAfter = class, after
	}
}

// remembered is how many keys a memory keeps at least, once it has had that many.
const remembered = 512

// memory is a map that forgets what was not put for longest. The zero memory is empty. It is safe for concurrent use.
type memory struct {
	mu sync.Mutex
	// What is put gets into young. When that is full, it becomes old, and what was old is forgotten.
	young, old map[string]string
}

// get returns what was put last for the key; "" for a key that is empty or not known.
func (m *memory) get(key string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value, ok := m.young[key]; ok {
		return value
	}
	return m.old[key]
}

// put sets the value of a key that is not empty.
func (m *memory) put(key, value string) {
	if key == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.young[key]; !ok && len(m.young) == remembered || m.young == nil {
		m.young, m.old = map[string]string{}, m.young
	}
	m.young[key] = value
}
