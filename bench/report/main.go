package report

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/bench"
)

// ErrMissed is returned by Main with -strict when a target was missed.
var ErrMissed = errors.New("report: a target was missed")

// Main is the command line of the report: it measures the rows of package bench that
// args choose, beside the rivals, and writes the table to stdout. All else that args
// ask for goes to files. When ctx ends it returns its cause, after the slice under way,
// and writes nothing.
func Main(ctx context.Context, args []string, stdout io.Writer, rivals ...bench.Rival) error {
	c, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		_, err := io.WriteString(stdout, c.usage)
		return err
	}
	if err != nil {
		return err
	}
	rows, err := choose(bench.Rows(), c.rows)
	if err != nil {
		return err
	}
	if err := known(rivals); err != nil {
		return err
	}
	if c.only != "" {
		return c.profiled(func() error { return c.alone(ctx, rows, stdout) })
	}
	var results []Result
	if err := c.profiled(func() error {
		for _, row := range rows {
			r, err := Measure(ctx, row, c.options, of(row, rivals)...)
			if err != nil {
				return err
			}
			results = append(results, r)
		}
		return nil
	}); err != nil {
		return err
	}
	return c.write(stdout, results)
}

// command is what the arguments say.
type command struct {
	rows                   string
	options                Options
	svg, json              string
	strict                 bool
	only                   string
	cpuProfile, memProfile string
	usage                  string
}

func parse(args []string) (command, error) {
	var c command
	var text bytes.Buffer
	f := flag.NewFlagSet("report", flag.ContinueOnError)
	f.SetOutput(&text)
	f.StringVar(&c.rows, "rows", "", "measure these `rows` only, by id or by id/case: P1,P2/hooks=8")
	f.IntVar(&c.options.Rounds, "rounds", 10, "pairs of slices for each row")
	f.DurationVar(&c.options.Slice, "slice", Options{}.withDefaults().Slice, "how long a slice takes, about")
	f.StringVar(&c.svg, "svg", "", "draw the table into this `file`")
	f.StringVar(&c.json, "json", "", "write all numbers into this `file`")
	f.BoolVar(&c.strict, "strict", false, "fail when a target was missed")
	f.StringVar(&c.only, "only", "", "run only this `side`, work or base, without a ratio; for profiles")
	f.StringVar(&c.cpuProfile, "cpuprofile", "", "write a CPU profile into this `file`")
	f.StringVar(&c.memProfile, "memprofile", "", "write a profile of all allocations into this `file`")
	err := f.Parse(args)
	c.usage = text.String()
	switch {
	case errors.Is(err, flag.ErrHelp):
		return c, err
	case err != nil:
		return c, fmt.Errorf("report: %w", err)
	case f.NArg() > 0:
		return c, fmt.Errorf("report: there is nothing to do with %q", f.Arg(0))
	case c.options.Rounds <= 0 || c.options.Slice <= 0:
		return c, errors.New("report: -rounds and -slice must be more than 0")
	case !slices.Contains([]string{"", "work", "base"}, c.only):
		return c, fmt.Errorf("report: -only is work or base, not %q", c.only)
	}
	return c, nil
}

// choose returns the rows that list names, all of them for "".
func choose(rows []bench.Row, list string) ([]bench.Row, error) {
	if list == "" {
		return rows, nil
	}
	wanted := strings.Split(list, ",")
	for _, name := range wanted {
		if !slices.ContainsFunc(rows, func(r bench.Row) bool { return name == r.ID || name == r.Key() }) {
			return nil, fmt.Errorf("report: there is no row %q", name)
		}
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r bench.Row) bool {
		return !slices.Contains(wanted, r.ID) && !slices.Contains(wanted, r.Key())
	}), nil
}

// known makes sure that every rival has a row to be compared in.
func known(rivals []bench.Rival) error {
	for _, v := range rivals {
		i := slices.IndexFunc(bench.Rows(), func(r bench.Row) bool { return r.Key() == v.Row })
		if i < 0 {
			return fmt.Errorf("report: rival %s: there is no row %q", v.ID, v.Row)
		}
	}
	return nil
}

func of(row bench.Row, rivals []bench.Rival) []bench.Rival {
	return slices.DeleteFunc(slices.Clone(rivals), func(v bench.Rival) bool { return v.Row != row.Key() })
}

// alone runs one side of each row.
func (c command) alone(ctx context.Context, rows []bench.Row, stdout io.Writer) error {
	var sides []Side
	for _, row := range rows {
		work := row.Work
		if c.only == "base" {
			work = row.Base
		}
		if work == nil {
			return fmt.Errorf("report: %s has no baseline", row.Key())
		}
		side, err := alone(ctx, row, work, c.options)
		if err != nil {
			return fmt.Errorf("report: %s: %w", row.Key(), err)
		}
		sides = append(sides, side)
	}
	return WriteSides(stdout, rows, sides)
}

func alone(ctx context.Context, row bench.Row, work bench.Work, o Options) (Side, error) {
	if row.Measure == bench.Kept {
		return Keep(work, o)
	}
	return Profile(ctx, work, o)
}

// write puts the results where the arguments say.
func (c command) write(stdout io.Writer, results []Result) error {
	heading := Heading(c.options)
	if err := WriteTable(stdout, heading, results); err != nil {
		return err
	}
	if err := toFile(c.svg, func(w io.Writer) error { return WriteChart(w, heading, results) }); err != nil {
		return err
	}
	if err := toFile(c.json, func(w io.Writer) error { return WriteJSON(w, c.options, results) }); err != nil {
		return err
	}
	if c.strict && slices.ContainsFunc(results, func(r Result) bool { return r.Verdict == Missed }) {
		return ErrMissed
	}
	return nil
}

// toFile writes a file whole or, on an error, not at all. Without a name it does nothing.
func toFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	return os.WriteFile(name, text.Bytes(), 0o644)
}
