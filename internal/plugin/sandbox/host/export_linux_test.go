package host

import "time"

// SetSweepTime sets how long Sweep waits for processes to end after TERM, and after KILL.
func SetSweepTime(d time.Duration) { graceTime, killTime = d, d }
