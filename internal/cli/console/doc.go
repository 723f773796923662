// Package console is what the commands of chela share: where they write and
// read, how they say things to people, and the connection to the gateway.
//
// A family of commands is a package beside this one, which is given a
// [Console] and returns its commands.
package console
