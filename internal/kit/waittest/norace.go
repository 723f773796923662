//go:build !race

package waittest

import "time"

// Limit is how long tests wait for something that has to happen.
const Limit = time.Minute
