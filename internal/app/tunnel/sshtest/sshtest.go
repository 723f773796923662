// Package sshtest is a program that stands for ssh in tests: it connects to the port that -W
// names on this machine.
package sshtest

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
)

// Variables of the program.
const (
	// Log is a file to which the program adds its arguments.
	Log = "SSHTEST_LOG"
	// Fail is what the program says before it ends with status 255; "": it connects.
	Fail = "SSHTEST_FAIL"
)

// failed is the status of an ssh that could not connect.
const failed = 255

// Main is the main function of the program. It returns the exit status.
func Main() int {
	if err := note(strings.Join(os.Args[1:], " ")); err != nil {
		return say(err.Error())
	}
	if text := os.Getenv(Fail); text != "" {
		return say(text)
	}
	i := slices.Index(os.Args, "-W")
	if i < 0 || i+1 == len(os.Args) {
		return say("no -W")
	}
	conn, err := net.Dial("tcp", os.Args[i+1])
	if err != nil {
		return say("channel 0: open failed: connect failed: Connection refused\nstdio forwarding failed")
	}
	done := make(chan struct{}, 2)
	go func() {
		_, _ = io.Copy(os.Stdout, conn)
		done <- struct{}{}
	}()
	go func() {
		_, _ = io.Copy(conn, os.Stdin)
		done <- struct{}{}
	}()
	<-done
	return 0
}

// note adds a line to the log.
func note(line string) error {
	path := os.Getenv(Log)
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	fmt.Fprintln(f, line)
	return f.Close()
}

func say(text string) int {
	fmt.Fprintln(os.Stderr, text)
	return failed
}
