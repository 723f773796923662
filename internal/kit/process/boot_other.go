//go:build !linux && !darwin

package process

import "time"

// Booted returns when the system started; zero: unknown.
func Booted() time.Time { return time.Time{} }
