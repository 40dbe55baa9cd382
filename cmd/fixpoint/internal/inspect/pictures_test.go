//go:build browser

package inspect_test

import "testing"

// TestPictures keeps pictures of the page for those who want to look at it.
func TestPictures(t *testing.T) {
	s := serve(t, richView())
	p := newTab(t, s.URL)
	p.size(1440, 900)
	p.open(s.URL)
	p.shot("1-first")
}
