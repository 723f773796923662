// Package exec implements the tools exec, which runs a shell command through
// a sandbox broker, and process, which monitors and controls commands that
// run in the background.
//
// A call is planned first. Package shell judges the command. Everything
// needed to run it (the shell's path, the working directory, the environment)
// is resolved into a sandbox.Plan. The verdict and the rules of package
// allowlist decide whether the command runs, needs approval or is refused.
// Run starts exactly the plan that was judged and shown, and looks nothing up
// again.
//
// A command that takes long, or is started in the background, is handed to
// [Commands], where only the session that started it can access it. It ends
// at its time limit or when Commands.Run ends, together with all its
// descendants. Before the call returns, a deferred result ([Defer]) is
// stored, so that the session is notified of the end even if this process
// does not survive.
//
// A command that fails is a normal result. The result holds the beginning and
// the end of the output. The most recent output is retained, in memory and
// then in an unnamed file, for as long as the command can be queried.
package exec
