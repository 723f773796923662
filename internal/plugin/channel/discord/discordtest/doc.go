// Package discordtest is an imitation of Discord for tests: the REST API, the gateway and
// the host of attachments, in memory or on a socket. It refuses what Discord refuses, keeps
// the messages that people see, and fails in the ways that are asked for.
package discordtest
