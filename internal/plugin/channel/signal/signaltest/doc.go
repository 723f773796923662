// Package signaltest is signal-cli's HTTP daemon with one account, in memory. It refuses what
// the daemon refuses, knows what people see, and can be made to fail.
package signaltest
