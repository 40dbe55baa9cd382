package effects

// nearest returns the known name with the fewest edits from name, or "" if none is close enough to be a slip.
func nearest(name string, known []string) string {
	best, least := "", 1+len(name)/3
	for _, k := range known {
		if d := edits(name, k); d <= least && (best == "" || d < least) {
			best, least = k, d
		}
	}
	return best
}

// edits counts the insertions, deletions and replacements of bytes that turn a into b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
