// Package sessions implements the tools with which a model works with other sessions:
// sessions_spawn starts a subagent, subagents lists, stops and steers those that were
// started, and sessions_yield waits for their results; sessions_list, sessions_history,
// sessions_search and agents_list read, and sessions_send sends a message to another
// session.
package sessions
