// Package allowlist says which commands run without a person's word.
//
// A [Policy] is the pair of OpenClaw's words: which commands may run at all
// (security) and when a person is asked (ask). A [Document] is the person's own
// rules, in OpenClaw's exec-approvals.json: a policy and entries for all agents
// or one. Of the configuration and the document the stricter holds. [Rules] are
// both, ready to match.
//
// What is matched is never text. A command is read as a [shell.Script]: a list
// of programs with their arguments, or nothing at all. Each program is looked up
// where the shell would look it up, and its file is what entries are about.
// What then runs is the script written again with those files in it, so that it
// is what was matched. Whatever cannot be decided is a miss, and one miss makes
// the whole command a miss.
package allowlist
