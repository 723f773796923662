package shape

import "strings"

// Label returns the name of a channel for people.
func Label(channel string) string {
	if channel == "" {
		return ""
	}
	return strings.ToUpper(channel[:1]) + channel[1:]
}
