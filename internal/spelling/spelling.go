// Package spelling tells how far a mistyped name is from one that exists.
package spelling

// longest is the length of names that are compared, in bytes. Longer ones are
// not like each other.
const longest = 80

// Distance counts the letters to insert, delete, change or swap to make b of
// a.
func Distance(a, b string) int {
	if len(a) > longest || len(b) > longest {
		return longest
	}
	var old, prev, cur [longest + 1]int
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
