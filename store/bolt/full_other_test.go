//go:build !linux

package bolt_test

import "errors"

func limitFiles(limit string) error {
	if limit != "" {
		return errors.New("bolt: files cannot be limited here")
	}
	return nil
}
