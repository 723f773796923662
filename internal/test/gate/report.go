package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

const module = "github.com/chela-ai/chela/"

// most is how many failed tests get a second look.
const most = 3

// event is a line that go test -json prints.
type event struct {
	Action      string
	Package     string // import path
	Test        string // with its subtests, separated by slashes; "": the package
	Output      string
	ImportPath  string // of a package that is built
	FailedBuild string // import path of the package that could not be built
}

// testID names a test function.
type testID struct{ pkg, test string }

// String returns the folder of the package and the name: internal/kit/lane.TestFair.
func (id testID) String() string { return strings.TrimPrefix(id.pkg, module) + "." + id.test }

// report is what a run of go test has shown.
type report struct {
	failed []testID          // test functions
	passed map[testID]int    // how often
	broken map[string]string // what failed outside of tests, by package
	output map[testID]*bytes.Buffer
	build  map[string]string   // the first line that says why a package could not be built, by its import path
	crash  map[string]string   // a line of the output that says so, by package
	needs  map[testID]string   // what tests, with their subtests' names, said that they need
	skips  map[string][]testID // such tests that were skipped, by what they need
}

func newReport() *report {
	return &report{
		passed: map[testID]int{},
		broken: map[string]string{},
		output: map[testID]*bytes.Buffer{},
		build:  map[string]string{},
		crash:  map[string]string{},
		needs:  map[testID]string{},
		skips:  map[string][]testID{},
	}
}

var (
	needsPattern = regexp.MustCompile(`\.go:\d+: (needs .*)`)
	crashPattern = regexp.MustCompile(`^(panic: .*|fatal error: .*|WARNING: DATA RACE|SIG[A-Z]+: .*)`)
)

// add takes an event in, and writes what a reader of the log wants to see of it to w.
func (r *report) add(e event, w io.Writer) {
	top, _, sub := strings.Cut(e.Test, "/")
	id := testID{e.Package, top}
	switch e.Action {
	case "build-output":
		fmt.Fprint(w, e.Output)
		if line := strings.TrimSpace(e.Output); r.build[e.ImportPath] == "" && !strings.HasPrefix(line, "#") {
			r.build[e.ImportPath] = line
		}
	case "build-fail":
		r.broken[e.ImportPath] = r.notBuilt(e.ImportPath)
	case "output":
		if e.Test == "" && (strings.HasPrefix(e.Output, "=== ") || e.Output == "PASS\n" || e.Output == "FAIL\n") {
			return
		}
		if e.Test == "" {
			fmt.Fprint(w, e.Output)
		}
		if r.output[id] == nil {
			r.output[id] = new(bytes.Buffer)
		}
		r.output[id].WriteString(e.Output)
		if m := crashPattern.FindString(e.Output); m != "" {
			r.crash[e.Package] = m
		}
		if m := needsPattern.FindStringSubmatch(e.Output); m != nil {
			r.needs[testID{e.Package, e.Test}] = m[1]
		}
	case "pass", "skip":
		if what := r.needs[testID{e.Package, e.Test}]; what != "" && e.Action == "skip" {
			r.skips[what] = append(r.skips[what], testID{e.Package, e.Test})
		}
		if e.Test != "" && !sub {
			r.passed[id]++
			delete(r.output, id)
		}
	case "fail":
		if e.Test != "" {
			if !sub && !slices.Contains(r.failed, id) {
				r.failed = append(r.failed, id)
			}
			return
		}
		inTests := slices.ContainsFunc(r.failed, func(f testID) bool { return f.pkg == e.Package })
		switch crash := r.crash[e.Package]; {
		case e.FailedBuild != "":
			r.broken[e.Package] = r.notBuilt(e.FailedBuild)
		case crash != "":
			r.broken[e.Package] = crash
		case !inTests:
			r.broken[e.Package] = "it failed outside of its tests"
		}
	}
}

// notBuilt says that the package with an import path could not be built, and why.
func (r *report) notBuilt(path string) string {
	if why := r.build[path]; why != "" {
		return "it could not be built: " + why
	}
	return "it could not be built"
}

// red says why failed tests get no second look, or returns "".
func (r *report) red() string {
	for _, pkg := range slices.Sorted(maps.Keys(r.broken)) {
		return strings.TrimPrefix(pkg, module) + ": " + r.broken[pkg]
	}
	if len(r.failed) > most {
		return fmt.Sprintf("%d tests failed", len(r.failed))
	}
	return ""
}

// text returns the output of a test that failed.
func (r *report) text(id testID) string {
	if b := r.output[id]; b != nil {
		return strings.TrimSpace(b.String())
	}
	return "it printed nothing"
}

// printFailures writes the output of what failed, and then the names.
func (r *report) printFailures(w io.Writer) {
	for _, id := range r.failed {
		if b := r.output[id]; b != nil {
			fmt.Fprintf(w, "\n%s:\n%s", id, b)
		}
	}
	for pkg := range r.broken {
		for id, b := range r.output {
			if id.pkg == pkg && !slices.Contains(r.failed, id) && id.test != "" {
				fmt.Fprintf(w, "\n%s, which has not ended:\n%s", id, b)
			}
		}
	}
	fmt.Fprintln(w)
	for _, pkg := range slices.Sorted(maps.Keys(r.broken)) {
		fmt.Fprintf(w, "FAIL\t%s: %s\n", strings.TrimPrefix(pkg, module), r.broken[pkg])
	}
	for _, id := range r.failed {
		fmt.Fprintf(w, "--- FAIL: %s\n", id)
	}
}

// printSkips lists the tests that need something that the machine lacks.
func (r *report) printSkips(w io.Writer) {
	for _, what := range slices.Sorted(maps.Keys(r.skips)) {
		for _, id := range r.skips[what] {
			fmt.Fprintf(w, "SKIP\t%s: %s\n", id, what)
		}
	}
}

// goTest runs go test -json with the arguments, and adds its events to r. That tests
// fail is no error.
func goTest(ctx context.Context, r *report, w io.Writer, args []string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	n := 0
	for d := json.NewDecoder(out); ; n++ {
		var e event
		if err = d.Decode(&e); err != nil {
			break
		}
		r.add(e, w)
	}
	if err != io.EOF {
		_, _ = io.Copy(io.Discard, out)
		return fmt.Errorf("go test -json: %w", err)
	}
	if err := cmd.Wait(); err != nil && len(r.failed) == 0 && len(r.broken) == 0 {
		return fmt.Errorf("go test: %w", err)
	}
	if n == 0 {
		return fmt.Errorf("go test printed nothing")
	}
	return nil
}

// againArgs returns the arguments that run one test three times: those of the first
// run without its packages.
func againArgs(args []string, id testID) []string {
	var out []string
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			out = append(out, a)
		}
	}
	return append(out, "-count=3", "-run=^"+regexp.QuoteMeta(id.test)+"$", id.pkg)
}
