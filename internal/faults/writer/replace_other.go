//go:build !unix

package writer

import (
	"errors"
	"fmt"
)

func (s Strike) happen(string) error {
	if s == Nothing || s == DieAtAnswer {
		return nil
	}
	return fmt.Errorf("writer: strike %q: %w", s, errors.ErrUnsupported)
}
