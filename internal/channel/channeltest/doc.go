// Package channeltest is what tests of channels, and tests that need one, share:
// [Suite], which every implementation of channel.Channel passes, and [Fake], a
// messaging platform in memory. The fake fails as platforms do, on demand; it
// uses no sockets and keeps the time of a synctest bubble.
package channeltest
