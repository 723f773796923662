// Package irc connects to an IRC network.
//
// IRC has no history and no message ids: what is written while the connection is down is
// lost, and each message that arrives gets an id of its own unless the server tells one. A
// message is sent as lines, and is confirmed by the answer to a PING that follows them. The
// lines that were confirmed are remembered by the key of the part, so that a retry
// continues after them.
//
// A person is identified by the account name if the server tells it, and otherwise by
// nick!user@host, which is no proof of identity on most networks.
package irc
