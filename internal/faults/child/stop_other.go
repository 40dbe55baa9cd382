//go:build !unix

package child

import (
	"errors"
	"fmt"
	"os"
)

// Stop needs a Unix system.
func Stop(*os.Process) error { return fmt.Errorf("child: stop: %w", errors.ErrUnsupported) }

// Continue needs a Unix system.
func Continue(*os.Process) error { return fmt.Errorf("child: continue: %w", errors.ErrUnsupported) }
