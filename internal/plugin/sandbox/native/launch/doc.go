// Package launch is the first process of a cage, its launcher, and what the
// gateway and it say to each other.
//
// The launcher is the program of the gateway, started again with [Arg] in
// namespaces of its own. It builds its root directory from a [Setup], waits for
// a [Command], starts it from a thread that it confines, and ends the processes
// that the command leaves behind. When it ends, the kernel ends all processes
// of the cage. It ends when its connection to the gateway, a [Wire], is closed.
//
// A program whose only part is this package would need a file of its own for
// each kind of processor. Instead, a process that was started as a launcher
// becomes one when this package is initialized, and ends there: main does not
// run, and neither do the initializers of the packages that come later, which
// is where nearly all of the time and the memory of a start goes. Go initializes
// a package as soon as those that it imports are, so this one imports little.
package launch
