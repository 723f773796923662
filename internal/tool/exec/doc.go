// Package exec is the tools exec, which runs a shell command through a sandbox
// broker, and process, which watches and steers those that went on without
// their call.
//
// A call is planned first. The command is read by package shell; what is
// needed to run it (the shell's path, the working directory, the environment)
// is resolved into a sandbox.Plan; the verdict and the rules of package allowlist
// decide whether it runs, asks or is refused. Run starts the plan that was judged and shown, and
// looks nothing up again.
//
// A command that takes long, or was meant to, is left to [Commands], under the
// session that began it and no other. It has a life of its own, bounded by its
// time limit and by Commands.Run, and ends with all its descendants. That its
// session will be told of the end is promised ([Owe]) before the call returns,
// in a form that outlives this process.
//
// A command that ends with an error is a normal result. Of its output a result
// has the beginning and the end, however much it is; the newest of all of it is
// kept, in memory and then in a file without a name, for as long as the command
// can be asked about.
package exec
