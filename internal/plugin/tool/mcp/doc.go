// Package mcp is a client of servers of the Model Context Protocol. The tools that
// the servers offer become tools of Chela.
//
// A [Pool] has at most one connection to each server, which all sessions share. A
// server is started at the first call of one of its tools, and stopped after a time
// without calls. A [Catalog] lists its tools and is kept in a file, so that they are
// known without starting it. Each start reads the list again.
//
// The servers are foreign programs. What a server does wrong harms only the call: the
// bytes, the number and the time of everything that it sends are bounded, its text
// reaches models between labels, and when it ends or is stopped, all processes that it
// left are ended. The client offers servers nothing: no roots, no sampling, no
// elicitation.
package mcp
