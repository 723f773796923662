// Package conformance drives a gateway with the published programs of
// OpenClaw: its command line, terminal interface, Control UI and reference
// client, and holds each answer against its schema.
//
// Its tests are built with the tag conformance only, as they need npm:
// `make conformance` runs them, `go test ./...` does not. A stand is a
// gateway of a test's own, the program itself with a scripted model; a kit
// is what npm installed, once for each set of versions, in the cache directory
// of this machine.
package conformance
