package main

import (
	"context"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/ddd26017/fixpoint/internal/faults/fuzzing"
)

// checkFuzz runs the fuzz targets of what reads stored bytes.
func checkFuzz(ctx context.Context, args []string, stdout io.Writer) error {
	s := newStorage("fuzz", stdout)
	packages := s.flags.String("packages", "./store/bolt ./state ./effects ./inference ./engine", "that read stored bytes")
	match := s.flags.String("match", "^Fuzz(Value|NameKey|Updates|Dump|Import|Delta|ParseID|Message|JSON|UnmarshalEvent|Record)$", "which targets")
	each := s.flags.Duration("time", 30*time.Second, "for each target")
	if err := s.flags.Parse(args); err != nil {
		return err
	}
	names, err := regexp.Compile(*match)
	if err != nil {
		return err
	}
	targets, err := fuzzing.Targets(ctx, strings.Fields(*packages), names)
	if err != nil {
		return err
	}
	for _, target := range targets {
		if err := target.Run(ctx, *each); err != nil {
			return err
		}
		s.tell(target)
	}
	return nil
}
