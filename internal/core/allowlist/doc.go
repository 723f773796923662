// Package allowlist decides which commands run without asking a person.
//
// A [Policy] combines two settings of OpenClaw: which commands may run at all
// (security) and when a person is asked (ask). A [Document] holds the
// person's own rules, in OpenClaw's exec-approvals.json: a policy and entries
// for all agents or for one. Where the configuration and the document differ,
// the stricter setting applies. [Rules] combine both and are ready to match.
//
// Matching never compares command text. A command is parsed into a
// [shell.Plan]; only those match that are a list of programs with their
// arguments. Each program is looked up as the shell would look it
// up, and entries apply to the resulting file. The command that runs is the
// plan rendered with those files, so exactly what was matched is run.
// Everything that cannot be decided is a miss, and one miss makes the whole
// command a miss.
package allowlist
