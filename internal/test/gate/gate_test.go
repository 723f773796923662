package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// shown returns the report of the lines that go test -json prints.
func shown(t *testing.T, lines string) *report {
	t.Helper()
	r := newReport()
	for d := json.NewDecoder(strings.NewReader(lines)); ; {
		var e event
		if err := d.Decode(&e); err == io.EOF {
			return r
		} else if err != nil {
			t.Fatal(err)
		}
		r.add(e, io.Discard)
	}
}

func TestReport(t *testing.T) {
	fails := func(names ...string) string {
		var b strings.Builder
		for _, name := range names {
			fmt.Fprintf(&b, `{"Action":"output","Package":"p","Test":"%s","Output":"    p_test.go:1: no\n"}{"Action":"fail","Package":"p","Test":"%s"}`, name, name)
		}
		return b.String() + `{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}{"Action":"fail","Package":"p"}`
	}
	for _, c := range []struct{ name, lines, failed, red string }{
		{"passed", `{"Action":"pass","Package":"p","Test":"TestA"}{"Action":"pass","Package":"p"}`, "[]", ""},
		{"three failed", fails("TestA", "TestB", "TestC"), "[p.TestA p.TestB p.TestC]", ""},
		{"four failed", fails("TestA", "TestB", "TestC", "TestD"), "[p.TestA p.TestB p.TestC p.TestD]", "4 tests failed"},
		{"a test and its subtests are one", fails("TestA/a", "TestA/b", "TestA/c", "TestA/d", "TestA"), "[p.TestA]", ""},
		{"a panic", `{"Action":"output","Package":"p","Test":"TestA","Output":"panic: oh\n"}` + fails("TestA"),
			"[p.TestA]", "p: panic: oh"},
		{"a time-out", `{"Action":"output","Package":"p","Test":"TestA","Output":"panic: test timed out after 30m0s\n"}` +
			fails("TestA"),
			"[p.TestA]", "p: panic: test timed out after 30m0s"},
		{"a race", `{"Action":"output","Package":"p","Test":"TestA","Output":"WARNING: DATA RACE\n"}` + fails("TestA"),
			"[p.TestA]", "p: WARNING: DATA RACE"},
		{"a panic that the test wants", `{"Action":"output","Package":"p","Test":"TestA","Output":"panic: oh\n"}{"Action":"pass","Package":"p","Test":"TestA"}{"Action":"pass","Package":"p"}`,
			"[]", ""},
		{"outside of tests", `{"Action":"pass","Package":"p","Test":"TestA"}{"Action":"output","Package":"p","Output":"exit status 1\n"}{"Action":"fail","Package":"p"}`,
			"[]", "p: it failed outside of its tests"},
		{"a build failure", `{"ImportPath":"p [p.test]","Action":"build-output","Output":"# p\n"}{"ImportPath":"p [p.test]","Action":"build-output","Output":"p.go:1: no\n"}{"ImportPath":"p [p.test]","Action":"build-fail"}` +
			`{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`, "[]", "p: it could not be built: p.go:1: no"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := shown(t, c.lines)
			if got := fmt.Sprint(r.failed); got != c.failed {
				t.Errorf("failed: got %s, want %s", got, c.failed)
			}
			if got := r.red(); got != c.red {
				t.Errorf("red: got %q, want %q", got, c.red)
			}
			var b bytes.Buffer
			r.printFailures(&b)
			lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
			for i, id := range slices.Backward(r.failed) {
				if got, want := lines[len(lines)-len(r.failed)+i], "--- FAIL: "+id.String(); got != want {
					t.Errorf("the last lines have %q, want %q", got, want)
				}
			}
		})
	}
}

func TestSkips(t *testing.T) {
	r := shown(t, `{"Action":"output","Package":"p","Test":"TestA/x","Output":"    a_test.go:7: needs strace\n"}{"Action":"skip","Package":"p","Test":"TestA/x"}`+
		`{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:9: kills processes\n"}{"Action":"skip","Package":"p","Test":"TestB"}`+
		`{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:9: needs approval\n"}{"Action":"pass","Package":"p","Test":"TestC"}`)
	var b bytes.Buffer
	r.printSkips(&b)
	if got, want := b.String(), "SKIP\tp.TestA/x: needs strace\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFlakyFile(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	file := filepath.Join(t.TempDir(), "flaky")
	if known, err := readFlaky(file, now); err != nil || len(known) > 0 {
		t.Errorf("a missing file: got %v, %v", known, err)
	}
	for _, c := range []struct{ line, want string }{
		{"2026-03-01 p.TestA: it depends on the order of two goroutines", ""},
		{"2026-03-15 p.TestA: it depends on the order of two goroutines", ""},
		{"# nothing", ""},
		{"2026-02-28 p.TestA: it depends", "its date has passed"},
		{"2026-03-16 p.TestA: it depends", "its date is more than 14 days away"},
		{"2026-03-15 p.TestA", "it has no test or no cause"},
		{"2026-03-15 p.TestA: ", "it has no test or no cause"},
		{"soon p.TestA: it depends", "it has no date"},
	} {
		if err := os.WriteFile(file, []byte("\n"+c.line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		known, err := readFlaky(file, now)
		switch {
		case c.want == "" && (err != nil || known["p.TestA"] != strings.Contains(c.line, "TestA")):
			t.Errorf("%q: got %v, %v", c.line, known, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), ":2: "+c.want)):
			t.Errorf("%q: got %v, want %q", c.line, err, c.want)
		}
	}
}

// write makes the files of a module, a folder a package.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module m\n\ngo 1.26\n"
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestSecondLook runs go test in a module with tests of each kind.
func TestSecondLook(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	// A flaky test fails at its first run, which leaves a file.
	const flaky = `if _, err := os.Stat("run"); err != nil { os.WriteFile("run", nil, 0o600); t.Error("this once") }`
	body := func(code string) string { return "package p\nimport (\"os\"; \"testing\")\nvar _ = os.Stat\n" + code }
	t.Chdir(write(t, map[string]string{
		"good/p_test.go":   body("func TestGood(t *testing.T) {}"),
		"flaky/p_test.go":  body("func TestFlaky(t *testing.T) { " + flaky + " }\nfunc TestOther(t *testing.T) {}"),
		"flaky2/p_test.go": body("func TestFlaky(t *testing.T) { " + flaky + " }"),
		"bad/p_test.go":    body("func TestBad(t *testing.T) { t.Error(\"always\") }"),
		"panics/p_test.go": body("func TestPanic(t *testing.T) { " +
			strings.Replace(flaky, `t.Error("this once")`, `panic("this once")`, 1) + " }"),
		"broken/p_test.go": body("func TestBroken(t *testing.T) { undefined() }"),
		"exits/p_test.go":  body("func TestMain(m *testing.M) { m.Run(); os.Exit(3) }"),
	}))
	for _, c := range []struct{ pkg, err, shows string }{
		{"good", "", "ok  \tm/good"},
		{"flaky", "", "FLAKY\tm/flaky.TestFlaky: "},
		{"flaky2", "", "|     p_test.go:4: this once\n"},
		{"bad", "m/bad.TestBad failed again", "--- FAIL: m/bad.TestBad\n"},
		{"panics", "m/panics: panic: this once", "FAIL\tm/panics: panic: this once"},
		{"broken", "it could not be built", "undefined: undefined"},
		{"exits", "m/exits: it failed outside of its tests", "FAIL\tm/exits"},
		{"none", "./none: it could not be built", ""},
	} {
		var b bytes.Buffer
		err := test(t.Context(), &b, []string{"./" + c.pkg})
		if got := fmt.Sprint(err); c.err == "" && err != nil || !strings.Contains(got, c.err) {
			t.Errorf("%s: got %v, want %q", c.pkg, err, c.err)
		}
		if !strings.Contains(b.String(), c.shows) {
			t.Errorf("%s: the output lacks %q:\n%s", c.pkg, c.shows, b.String())
		}
	}
}

func TestTypes(t *testing.T) {
	for _, c := range []struct{ name, target, code, want string }{
		{"right", "linux/386", "func F(t *testing.T) {}", ""},
		{"a wrong type", "linux/amd64", "func F(t *testing.T) { var n int = \"x\"; _ = n }", "cannot use \"x\""},
		{"not for this system", "windows/amd64", "var _ = syscall.Kill\nfunc F(t *testing.T) {}", "undefined: syscall.Kill"},
		{"too large for 32 bits", "linux/386", "const N int = 1 << 40\nfunc F(t *testing.T) {}", "overflows"},
		{"not too large for 64 bits", "linux/amd64", "const N int = 1 << 40\nfunc F(t *testing.T) {}", ""},
		{"unused", "linux/amd64", "func F(t *testing.T) { n := 1 }", "declared and not used: n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			imports := "import \"testing\"\n"
			if strings.Contains(c.code, "syscall") {
				imports += "import \"syscall\"\n"
			}
			t.Chdir(write(t, map[string]string{"p/p.go": "package p\n", "p/p_test.go": "package p\n" + imports + c.code + "\n"}))
			packages, err := list(t.Context(), c.target)
			if err == nil {
				err = check(c.target, packages)
			}
			if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
