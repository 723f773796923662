// Package irctest is an IRC server in memory, for tests. It is strict: it refuses lines that
// are too long, unknown commands, and messages to channels that the client is not in.
package irctest
