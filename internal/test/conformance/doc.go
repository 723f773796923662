// Package conformance runs the published programs of OpenClaw against a gateway:
// its command line, terminal interface, Control UI and reference client. It
// validates each answer against the published schema. The clients of model services use the
// gateway as a model. It also runs the gateway with
// other people's servers: mail goes through Dovecot and Postfix, if they are installed.
//
// It also checks the channels and their fakes against the programs of others: a
// gateway talks to people on ngircd, an IRC server, and a bot of grammY, a library
// for Telegram, uses the fake of Telegram. The tests with ngircd are skipped if it
// is not installed.
//
// The tests need npm, so they have the build tag conformance: `make
// conformance` runs them, `go test ./...` does not. Each test starts its own
// gateway, the real program with a scripted model. A kit is a set of npm
// packages; it is installed once, in the cache directory of this machine.
package conformance
