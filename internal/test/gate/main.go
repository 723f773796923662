package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
		stop()
		os.Exit(1)
	}
}

// run carries out one command line.
func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "types":
		return checkTypes(ctx, os.Stdout)
	case len(args) > 1 && args[0] == "test":
		return test(ctx, os.Stdout, args[1:])
	}
	return errors.New("usage: gate types, or gate test and the arguments of go test")
}

// test runs go test with the arguments, looks at failed tests a second time, and
// returns an error if the run is red.
func test(ctx context.Context, w io.Writer, args []string) error {
	known, err := readFlaky(flakyFile, time.Now())
	if err != nil {
		return err
	}
	first := newReport()
	if err := goTest(ctx, first, w, args); err != nil {
		return err
	}
	first.printSkips(w)
	if len(first.failed) == 0 && len(first.broken) == 0 {
		return nil
	}
	if red := first.red(); red != "" {
		first.printFailures(w)
		return errors.New(red)
	}
	var flaky []testID
	for _, id := range first.failed {
		fmt.Fprintf(w, "\n%s failed:\n| %s\nsecond look at it: three times, alone\n", id,
			strings.ReplaceAll(first.text(id), "\n", "\n| "))
		again := newReport()
		if err := goTest(ctx, again, w, againArgs(args, id)); err != nil {
			return err
		}
		if len(again.failed) > 0 || len(again.broken) > 0 || again.passed[id] != 3 {
			first.printFailures(w)
			return fmt.Errorf("%s failed again", id)
		}
		flaky = append(flaky, id)
	}
	for _, id := range flaky {
		fmt.Fprintf(w, "FLAKY\t%s: it failed, then passed three times alone", id)
		if !known[id.String()] {
			fmt.Fprintf(w, "; mend it, or enter it into %s:\n%s %s: CAUSE", flakyFile,
				time.Now().AddDate(0, 0, flakyDays).Format(time.DateOnly), id)
		}
		fmt.Fprintln(w)
	}
	return nil
}
