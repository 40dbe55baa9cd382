package jsonpos

import "strings"

// Nearest returns the known name that name was most likely meant to be, or "" when
// none is near. The first of several equally near names wins. Names that differ
// only in case or in the kind of dash count as equal.
func Nearest(name string, known []string) string {
	folded := foldName(name)
	best, limit := "", min(len(folded)/3, 3)
	for _, k := range known {
		other := foldName(k)
		if max(len(other)-len(folded), len(folded)-len(other)) > limit {
			continue
		}
		if n := edits(folded, other); n <= limit {
			best, limit = k, n-1
		}
	}
	return best
}

func foldName(name string) []rune {
	return []rune(strings.ReplaceAll(strings.ToLower(name), "-", "_"))
}

// edits counts the insertions, deletions, replacements and swaps of neighbours
// that turn a into b.
func edits(a, b []rune) int {
	table := make([][]int, len(a)+1) // the counts for every prefix of a and b
	for i := range table {
		table[i] = make([]int, len(b)+1)
		for j := range table[i] {
			switch {
			case i == 0 || j == 0:
				table[i][j] = i + j
			case a[i-1] == b[j-1]:
				table[i][j] = table[i-1][j-1]
			default:
				table[i][j] = 1 + min(table[i-1][j], table[i][j-1], table[i-1][j-1])
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					table[i][j] = min(table[i][j], 1+table[i-2][j-2])
				}
			}
		}
	}
	return table[len(a)][len(b)]
}
