//go:build unix

package main

import (
	"context"
	"io"
	"time"

	"github.com/ddd26017/fixpoint/internal/faults/scale"
)

func init() {
	checks["scale"] = checkScale
	checks["plan"] = checkPlan
}

// checkPlan computes how many servers many workers need.
func checkPlan(_ context.Context, args []string, stdout io.Writer) error {
	s := newStorage("plan", stdout)
	faster := s.flags.Float64("faster", 1, "how much more the servers do than those that were measured")
	if err := s.flags.Parse(args); err != nil {
		return err
	}
	return scale.Plan(stdout, s.seed, *faster)
}

// checkScale measures what workers and stores do.
func checkScale(ctx context.Context, args []string, stdout io.Writer) error {
	s := newStorage("scale", stdout)
	store := s.flags.String("store", "all", "memstore, bolt, postgres, nats or all")
	o := scale.Options{Out: stdout}
	s.flags.IntVar(&o.Replicas, "replicas", 1, "NATS servers, all in this process")
	s.flags.DurationVar(&o.For, "for", 5*time.Second, "how long each figure is measured")
	if err := s.flags.Parse(args); err != nil {
		return err
	}
	kinds, err := chosen(*store, scale.Stores...)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		o := o
		o.Kind = kind
		err := s.in(func(dir string) error {
			o.Dir = dir
			_, err := scale.Measure(ctx, o)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
