// Package test is the folder of tests that need more than one package: the whole
// gateway in one process (chelatest), simulated days of it (sim), OpenClaw's own
// clients (conformance), power loss (power), and the rules of the source tree (arch).
//
// Nothing outside of tests imports these packages. A conformance suite of one
// contract is not here but beside its contract in core.
package test
