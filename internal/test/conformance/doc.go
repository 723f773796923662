// Package conformance runs the published programs of OpenClaw against a gateway:
// its command line, terminal interface, Control UI and reference client. It
// validates each answer against the published schema.
//
// The tests need npm, so they have the build tag conformance: `make
// conformance` runs them, `go test ./...` does not. Each test starts its own
// gateway, the real program with a scripted model. A kit is a set of npm
// packages; it is installed once, in the cache directory of this machine.
package conformance
