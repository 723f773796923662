package wireview

import "strings"

// Label returns the display name of a channel.
func Label(channel string) string {
	if channel == "" {
		return ""
	}
	return strings.ToUpper(channel[:1]) + channel[1:]
}
