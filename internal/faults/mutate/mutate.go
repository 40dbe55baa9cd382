// Package mutate runs the long version of the test in store/bolt that damages a file in
// every sector: each damage has to end in an error or in what was right before, never in
// wrong data, a panic or a signal.
package mutate

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Figures are what the mutations came to.
type Figures struct {
	Mutations int
	Bytes     int // of the file
	Seed      uint64
	Outcomes  string
	Silent    int // subtests that failed: wrong data, or an error of another kind
	Crashed   bool
}

// String returns the line that the command prints.
func (f Figures) String() string {
	panics := 0
	if f.Crashed {
		panics = 1
	}
	return fmt.Sprintf("mutate store=bolt mutations=%d bytes=%d failed=%d panics=%d outcomes=[%s] seed=%d",
		f.Mutations, f.Bytes, f.Silent, panics, f.Outcomes, f.Seed)
}

// Err says which bound was not met, or nil.
func (f Figures) Err(want int) error {
	switch {
	case f.Crashed:
		return errors.New("mutate: the process ended")
	case f.Silent > 0:
		return fmt.Errorf("mutate: %d of %d mutations were not handled", f.Silent, f.Mutations)
	case f.Mutations < want:
		return fmt.Errorf("mutate: %d mutations; want at least %d", f.Mutations, want)
	}
	return nil
}

// Run runs the test with at least so many random mutations besides the regular ones. It
// must be called inside the repository.
func Run(ctx context.Context, random int, seed uint64) (Figures, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout=2h", "-v", "-run=^TestMutations$", "github.com/ddd26017/fixpoint/store/bolt")
	cmd.Env = append(os.Environ(), fmt.Sprintf("FIXPOINT_MUTATIONS=%d", random), fmt.Sprintf("FIXPOINT_SEED=%d", seed))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return Figures{}, err
	}
	if err := cmd.Start(); err != nil {
		return Figures{}, fmt.Errorf("mutate: %w", err)
	}
	f, err := Read(io.TeeReader(out, &complaints{to: os.Stderr}))
	failed := cmd.Wait()
	if f.Silent > 0 || f.Crashed {
		return f, err // these say more than the exit code
	}
	return f, errors.Join(err, failed)
}

// complaints passes on what go test -v says of tests that do not pass.
type complaints struct {
	to   io.Writer
	line []byte
}

// Write implements io.Writer.
func (c *complaints) Write(p []byte) (int, error) {
	for _, b := range p {
		c.line = append(c.line, b)
		if b != '\n' {
			continue
		}
		if word := bytes.TrimLeft(c.line, " "); !bytes.HasPrefix(word, []byte("=== ")) && !bytes.HasPrefix(word, []byte("--- PASS")) {
			if _, err := c.to.Write(c.line); err != nil {
				return 0, err
			}
		}
		c.line = c.line[:0]
	}
	return len(p), nil
}

// Read takes the figures from what the test prints.
func Read(out io.Reader) (f Figures, err error) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	found := false
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch {
		case strings.HasPrefix(line, "--- FAIL: TestMutations/"):
			f.Silent++
		case strings.HasPrefix(line, "panic:"), strings.HasPrefix(line, "fatal error:"), strings.Contains(line, "SIGSEGV"), strings.Contains(line, "SIGBUS"):
			f.Crashed = true
		}
		_, text, is := strings.Cut(line, "mutations=")
		if !is {
			continue
		}
		if _, err := fmt.Sscanf(text, "%d bytes=%d seed=%d", &f.Mutations, &f.Bytes, &f.Seed); err != nil {
			return f, fmt.Errorf("mutate: the summary %q: %w", line, err)
		}
		_, outcomes, _ := strings.Cut(text, "outcomes=map[")
		f.Outcomes = strings.TrimSuffix(outcomes, "]")
		found = true
	}
	if err := lines.Err(); err != nil {
		return f, err
	}
	if !found && !f.Crashed && f.Silent == 0 {
		return f, errors.New("mutate: the test printed no summary; run the command inside the repository")
	}
	return f, nil
}
