package wire

// MethodChannelsStatus reports the state of the messaging accounts.
const MethodChannelsStatus = "channels.status"

// ChannelsGet holds the parameters of channels.status.
type ChannelsGet struct {
	Channel string `json:"channel,omitempty"` // "": all
}

// ChannelsStatus is the result of channels.status. All maps are keyed by
// channel.
type ChannelsStatus struct {
	Time     Millis                      `json:"ts"`
	Order    []string                    `json:"channelOrder"`
	Labels   map[string]string           `json:"channelLabels"`
	Channels map[string]ChannelState     `json:"channels"`
	Accounts map[string][]ChannelAccount `json:"channelAccounts"`
	Defaults map[string]string           `json:"channelDefaultAccountId"`
}

// ChannelState is a channel in [ChannelsStatus] and [Health].
type ChannelState struct {
	Configured bool    `json:"configured"`
	Running    bool    `json:"running"`
	Error      *string `json:"lastError,omitempty"` // why it is not running
}

// ChannelAccount is an account of a channel.
type ChannelAccount struct {
	ID         string  `json:"accountId"`
	Enabled    bool    `json:"enabled"`
	Configured bool    `json:"configured"`
	Running    bool    `json:"running"`
	Error      *string `json:"lastError,omitempty"`
}
