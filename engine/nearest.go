package engine

import (
	"slices"
	"strings"
)

// nearest returns the known name that name was most likely meant to be, or ""
// when none is near. The first of several equally near names wins.
func nearest(name string, known []string) string {
	folded := foldName(name)
	best, limit := "", min(len(folded)/3, 3)
	for _, k := range known {
		if d := editDistance(folded, foldName(k), limit); d <= limit {
			best, limit = k, d-1
		}
	}
	return best
}

// foldName makes names equal that differ in case or in the kind of dash only.
func foldName(name string) []rune {
	return []rune(strings.ReplaceAll(strings.ToLower(name), "-", "_"))
}

// editDistance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b. Above limit the answer is merely above limit.
func editDistance(a, b []rune, limit int) int {
	if max(len(a)-len(b), len(b)-len(a)) > limit {
		return limit + 1
	}
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		if slices.Min(row) > limit {
			return limit + 1
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
