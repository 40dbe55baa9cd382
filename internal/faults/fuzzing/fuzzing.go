// Package fuzzing runs the fuzz targets of the packages that read stored bytes, longer
// than CI does. Their seeds run as plain tests each time.
package fuzzing

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Figures are what one target came to.
type Figures struct {
	Package, Target string
	Time            time.Duration
	Runs            int // inputs tried
}

// String returns the line that the command prints.
func (f Figures) String() string {
	return fmt.Sprintf("fuzz target=%s.%s time=%s inputs=%d crashes=0", f.Package, f.Target, f.Time, f.Runs)
}

// Targets lists the fuzz targets of packages; match chooses among their names. It must be
// called inside the repository.
func Targets(ctx context.Context, packages []string, match *regexp.Regexp) ([]Figures, error) {
	args := append([]string{"test", "-list=^Fuzz"}, packages...)
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("fuzzing: list the targets: %w: %s", err, out)
	}
	targets := readList(string(out), match)
	if len(targets) == 0 {
		return nil, errors.New("fuzzing: there is no such target")
	}
	return targets, nil
}

// readList reads what go test -list prints: the names of a package before its path.
func readList(out string, match *regexp.Regexp) (targets []Figures) {
	var names []string
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 1 && strings.HasPrefix(fields[0], "Fuzz"):
			names = append(names, fields[0])
		case len(fields) > 1 && fields[0] == "ok":
			for _, name := range names {
				if match.MatchString(name) {
					targets = append(targets, Figures{Package: fields[1], Target: name})
				}
			}
			names = nil
		}
	}
	return targets
}

// Run fuzzes the target for a time. A crash is an error with what go test printed.
func (f *Figures) Run(ctx context.Context, d time.Duration) error {
	f.Time = d
	for try := 1; ; try++ {
		out, err := exec.CommandContext(ctx, "go", "test", "-run=^$", "-fuzz=^"+f.Target+"$", "-fuzztime="+d.String(), f.Package).CombinedOutput()
		f.Runs = max(f.Runs, readRuns(string(out)))
		switch {
		case err == nil && f.Runs == 0:
			return fmt.Errorf("fuzzing: %s tried nothing: %s", f.Target, out)
		case err == nil:
			return nil
		case try < 3 && onlyLate(string(out)):
		default:
			return fmt.Errorf("fuzzing: %s in %s: %w\n%s", f.Target, f.Package, err, out)
		}
	}
}

var runs = regexp.MustCompile(`execs: (\d+) `)

// readRuns returns the last number of inputs that was printed.
func readRuns(out string) int {
	all := runs.FindAllStringSubmatch(out, -1)
	if len(all) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(all[len(all)-1][1])
	return n
}

var trouble = regexp.MustCompile(`Failing input|panic:|fuzzing process|_test\.go:\d+`)

// onlyLate reports whether nothing but the end of the time was called a failure, which
// Go before 1.27 sometimes does (go.dev/issue/75804).
func onlyLate(out string) bool {
	return strings.Contains(out, "context deadline exceeded") && !trouble.MatchString(out)
}
