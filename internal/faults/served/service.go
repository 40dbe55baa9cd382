package served

import "context"

// service is what clients call. Its methods have the form that net/rpc asks for.
type service struct{ *Server }

func (s *service) Append(a *Ask, r *Reply) error {
	e := Entry{Client: a.Client, Thread: a.Commit.Thread, Empty: len(a.Commit.Record) == 0}
	r.Fault = faultOf(s.change(e, func() (rev uint64, err error) {
		r.Revision, err = s.store.Append(context.Background(), mapCommit(a.Commit, unpack))
		return r.Revision, err
	}))
	return nil
}

func (s *service) Acquire(a *Ask, r *Reply) error {
	e := Entry{Client: a.Client, Thread: a.Thread, Lease: true, Empty: true}
	r.Fault = faultOf(s.change(e, func() (rev uint64, err error) {
		r.Lease, err = s.store.Acquire(context.Background(), a.Thread, a.Lease.Owner, a.TTL)
		return r.Lease.Epoch, err
	}))
	return nil
}

func (s *service) Renew(a *Ask, r *Reply) error {
	lease, err := s.store.Renew(context.Background(), a.Lease, a.TTL)
	r.Lease, r.Fault = lease, faultOf(err)
	return nil
}

func (s *service) Release(a *Ask, r *Reply) error {
	r.Fault = faultOf(s.store.Release(context.Background(), a.Lease))
	return nil
}

func (s *service) Load(a *Ask, r *Reply) error {
	ctx := context.Background()
	if a.TTL > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.TTL)
		defer cancel()
	}
	image, err := s.store.Load(ctx, a.Thread, a.Revision)
	r.Image, r.Fault = mapImage(image, pack), faultOf(err)
	return nil
}

func (s *service) LoadAt(a *Ask, r *Reply) error {
	image, err := s.store.LoadAt(context.Background(), a.Thread, a.Revision)
	r.Image, r.Fault = mapImage(image, pack), faultOf(err)
	return nil
}

func (s *service) Threads(a *Ask, r *Reply) error {
	threads, err := s.store.Threads(context.Background(), a.Thread, a.Limit)
	r.Threads, r.Fault = threads, faultOf(err)
	return nil
}

func (s *service) Prune(a *Ask, r *Reply) error {
	r.Fault = faultOf(s.store.Prune(context.Background(), a.Thread, a.Policy))
	return nil
}

func (s *service) Delete(a *Ask, r *Reply) error {
	r.Fault = faultOf(s.store.Delete(context.Background(), a.Thread))
	return nil
}

func (s *service) Claim(a *Ask, r *Reply) error {
	claims, err := s.store.Claim(context.Background(), a.Lane, a.Client, a.Limit, a.TTL)
	r.Claims, r.Fault = mapClaims(claims, pack), faultOf(err)
	return nil
}

func (s *service) Settle(a *Ask, r *Reply) error {
	r.Fault = faultOf(s.store.Settle(context.Background(), a.Claim, a.How))
	return nil
}

func (s *service) Caps(_ *Ask, r *Reply) error {
	r.Caps = s.store.Caps()
	return nil
}
