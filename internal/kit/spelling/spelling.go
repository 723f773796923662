// Package spelling measures how similar two names are, to suggest a correction
// for a mistyped name.
package spelling

import "strings"

// maxLen is the maximum length of the compared names in bytes. Longer names are
// reported as different.
const maxLen = 80

// Distance returns the number of bytes to insert, delete, change or swap to turn
// a into b.
func Distance(a, b string) int {
	if len(a) > maxLen || len(b) > maxLen {
		return maxLen
	}
	var old, prev, cur [maxLen + 1]int
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], old[j-2]+1)
			}
		}
		old, prev = prev, cur
	}
	return prev[len(b)]
}

// Near reports whether one of two names may be the other, mistyped: by one byte, or by two if
// one of them has six or more.
func Near(a, b string) bool {
	most := 1
	if max(len(a), len(b)) >= 6 {
		most = 2
	}
	return Distance(a, b) <= most
}

// DidYouMean returns a question such as "; did you mean exec or exit?", which ends the error
// about an unknown name; "": none of the names is like it.
func DidYouMean(name string, names []string) string {
	var like []string
	for _, n := range names {
		if Near(name, n) {
			like = append(like, n)
		}
	}
	if len(like) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(like, " or ") + "?"
}
