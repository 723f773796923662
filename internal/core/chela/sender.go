package chela

import "strings"

// ChannelSender is a sender on an account of a channel. Its String is the id of the
// corresponding principal.
type ChannelSender struct {
	Channel string
	Account AccountID
	ID      string
}

// String returns the id of the sender's principal: channel:account:sender.
func (s ChannelSender) String() string {
	return s.Channel + ":" + string(s.Account) + ":" + s.ID
}

// ParseChannelSender parses the principal id of a sender. It reports false for other
// principals, such as the owner and nodes.
func ParseChannelSender(id string) (ChannelSender, bool) {
	channel, rest, ok := strings.Cut(id, ":")
	account, sender, ok2 := strings.Cut(rest, ":")
	return ChannelSender{channel, AccountID(account), sender}, ok && ok2
}

const deviceCredential = "device:"

// DeviceCredential returns the credential of a principal that authenticated as the
// device.
func DeviceCredential(device string) string { return deviceCredential + device }

// DeviceOf returns the device of a device credential.
func DeviceOf(credential string) (device string, ok bool) {
	return strings.CutPrefix(credential, deviceCredential)
}
