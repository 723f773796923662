// Package channeltest contains [Suite], the conformance suite for implementations
// of channel.Channel, and [Fake], a messaging platform in memory for tests that
// need a channel. The fake fails on demand in the ways that real platforms do. It
// uses no sockets and works with the time of a synctest bubble.
package channeltest
