package report

import (
	"errors"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
)

// profiled calls fn under the profilers that the arguments ask for. They see the whole
// process: choose rows, and one side of them, to see that.
func (c command) profiled(fn func() error) (err error) {
	if c.memProfile != "" {
		before := runtime.MemProfileRate
		runtime.MemProfileRate = 4096 // often enough for works that allocate little
		defer func() { runtime.MemProfileRate = before }()
	}
	if c.cpuProfile != "" {
		f, failed := os.Create(c.cpuProfile)
		if failed != nil {
			return failed
		}
		if failed := pprof.StartCPUProfile(f); failed != nil {
			return errors.Join(failed, f.Close())
		}
		defer func() {
			pprof.StopCPUProfile()
			err = errors.Join(err, f.Close())
		}()
	}
	if err := fn(); err != nil {
		return err
	}
	return toFile(c.memProfile, func(w io.Writer) error {
		runtime.GC() // the profile is of the last collection
		return pprof.Lookup("allocs").WriteTo(w, 0)
	})
}
