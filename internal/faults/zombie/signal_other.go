//go:build !unix

package zombie

import "errors"

var errNoSignals = errors.New("zombie: this system cannot stop a process")

func stop(int) error { return errNoSignals }

func proceed(int) error { return errNoSignals }
