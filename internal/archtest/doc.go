// Package archtest holds the shape of the house as tests: which package may
// import which, that every package says what it is, and what no package may
// have. There is nothing in it but tests.
package archtest
