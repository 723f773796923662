package journal

import "time"

// Options is the section undo of the configuration.
type Options struct {
	Enabled *bool  `json:"enabled"`  // whether changes are recorded; nil: yes
	Days    *int   `json:"days"`     // how long changes are kept; nil: 90
	MaxSize *int64 `json:"maxBytes"` // of all contents that are kept; nil: 512 MiB
}

// The defaults.
const (
	defaultDays    = 90
	defaultMaxSize = 512 << 20
)

// On reports whether changes are recorded.
func (o Options) On() bool { return o.Enabled == nil || *o.Enabled }

// Retention returns how long changes are kept.
func (o Options) Retention() time.Duration {
	days := defaultDays
	if o.Days != nil && *o.Days > 0 {
		days = *o.Days
	}
	return time.Duration(days) * 24 * time.Hour
}

// Size returns the number of bytes of the contents that are kept.
func (o Options) Size() int64 {
	if o.MaxSize != nil && *o.MaxSize > 0 {
		return *o.MaxSize
	}
	return defaultMaxSize
}
