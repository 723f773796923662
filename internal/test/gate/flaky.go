package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

const (
	flakyFile = ".ci/flaky"
	flakyDays = 14 // how long a test may stay flaky
)

// readFlaky returns the tests that are known to be flaky. A line whose date has passed,
// or is more than flakyDays away, is an error. A missing file has no lines.
func readFlaky(file string, now time.Time) (map[string]bool, error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	known := map[string]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fault := func(what string) error {
			return fmt.Errorf("%s:%d: %s: %q; a line is DATE TEST: CAUSE", file, i+1, what, line)
		}
		date, rest, _ := strings.Cut(line, " ")
		test, cause, _ := strings.Cut(rest, ": ")
		until, err := time.ParseInLocation(time.DateOnly, date, now.Location())
		switch {
		case err != nil:
			return nil, fault("it has no date")
		case test == "" || strings.TrimSpace(cause) == "":
			return nil, fault("it has no test or no cause")
		case now.After(until.AddDate(0, 0, 1)):
			return nil, fault("its date has passed: mend the test, or remove it")
		case until.After(now.AddDate(0, 0, flakyDays)):
			return nil, fault(fmt.Sprintf("its date is more than %d days away", flakyDays))
		}
		known[test] = true
	}
	return known, nil
}
