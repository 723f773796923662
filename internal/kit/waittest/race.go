//go:build race

package waittest

import "time"

// Limit is how long tests wait for something that has to happen. The race detector
// makes everything about ten times slower.
const Limit = 10 * time.Minute
