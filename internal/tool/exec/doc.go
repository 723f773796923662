// Package exec is the tool exec: it runs a shell command through a sandbox
// broker.
//
// A call is planned first. The command is read by package shell; what is
// needed to run it (the shell's path, the working directory, the environment)
// is resolved into a sandbox.Plan; the [Mode] and the verdict decide whether it
// runs, asks or is refused. Run starts the plan that was judged and shown, and
// looks nothing up again.
//
// A command that ends with an error is a normal result. Output is kept as its
// beginning and its end, however much it is.
package exec
