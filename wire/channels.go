package wire

// MethodChannelsStatus reports the state of the messaging accounts.
const MethodChannelsStatus = "channels.status"

// ChannelsGet holds the parameters of channels.status.
type ChannelsGet struct {
	Channel string `json:"channel,omitempty"`   // "": all
	Probe   bool   `json:"probe,omitempty"`     // ask the platforms whether the accounts work
	Timeout int64  `json:"timeoutMs,omitempty"` // of a probe, at most a minute; 0: ten seconds
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
	ID         string        `json:"accountId"`
	Enabled    bool          `json:"enabled"`
	Configured bool          `json:"configured"`
	Running    bool          `json:"running"`
	Connected  bool          `json:"connected"`
	Error      *string       `json:"lastError,omitempty"`
	Probe      *ChannelProbe `json:"probe,omitempty"` // nil: it was not asked, or cannot be
}

// ChannelProbe is what a platform said about an account.
type ChannelProbe struct {
	OK      bool   `json:"ok"`
	Error   string `json:"error,omitempty"`
	Elapsed int64  `json:"elapsedMs"`
}

// The methods about people who want to write on channels and are not in the
// configuration. They are not in OpenClaw, whose methods have other requests.
const (
	MethodGuestList    = "guests.list"
	MethodGuestApprove = "guests.approve"
	MethodGuestDismiss = "guests.dismiss"
	MethodGuestRemove  = "guests.remove"
)

// GuestsGet holds the parameters of guests.list.
type GuestsGet struct {
	Channel string `json:"channel,omitempty"`   // "": all
	Account string `json:"accountId,omitempty"` // "": all
}

// Guests is the result of guests.list.
type Guests struct {
	Requests []Guest     `json:"requests"` // that have not expired, oldest first
	Guests   []Guest     `json:"guests"`   // who were admitted
	Owned    bool        `json:"commandOwnerConfigured"`
	Limits   GuestLimits `json:"limits"`
}

// GuestLimits are the limits of requests.
type GuestLimits struct {
	Pending int   `json:"pendingPerAccount"`
	TTL     int64 `json:"ttlMs"`
}

// Guest is a person who was admitted on an account of a channel, or asks for it.
type Guest struct {
	Channel  string `json:"channel"`
	Account  string `json:"accountId"`
	ID       string `json:"senderId"`
	Name     string `json:"displayName,omitempty"`
	Request  string `json:"requestId,omitempty"` // the code that the person got; "": admitted
	Asked    Millis `json:"createdAtMs"`
	Admitted Millis `json:"approvedAtMs,omitzero"`
}

// GuestRequest names a request in guests.approve and guests.dismiss.
type GuestRequest struct {
	Channel string `json:"channel"`
	Account string `json:"accountId,omitempty"` // "": any
	Request string `json:"requestId"`
	Notify  bool   `json:"notify,omitempty"`                // tell the person
	Owner   bool   `json:"bootstrapCommandOwner,omitempty"` // the first one becomes the owner
}

// GuestDecided is the result of guests.approve, guests.dismiss and guests.remove. Without
// an ID there was no such request, or guest.
type GuestDecided struct {
	Request string `json:"requestId"`
	ID      string `json:"senderId,omitempty"`
	Notice  string `json:"notification,omitempty"`
	Owner   string `json:"commandOwnerBootstrap,omitempty"`
}

// The values of GuestDecided.Notice and GuestDecided.Owner.
const (
	GuestNotRequested     = "not-requested"
	GuestNotified         = "sent"
	GuestOwnerConfigured  = "configured"
	GuestOwnerExists      = "already-configured"
	GuestOwnerCannotBeSet = "failed"
)

// GuestRemove names a guest in guests.remove.
type GuestRemove struct {
	Channel string `json:"channel"`
	Account string `json:"accountId,omitempty"` // "": any
	ID      string `json:"senderId"`
}
