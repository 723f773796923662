//go:build unix

package chelatest

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// TestProgram is a conversation in which a small program is written, built,
// tested, served in the background, patched and served again. Actions that need
// approval are allowed and, once, denied.
func TestProgram(t *testing.T) {
	g := Start(t, Options{Model: uses()})
	c := g.Client()
	// do makes a call, answers the approval request, and returns the answer.
	do := func(call string, decisions ...string) string {
		t.Helper()
		run := c.Send("main", call)
		for _, d := range decisions {
			q := c.question()
			if q.Request.RunID != run {
				t.Fatalf("%s: unexpected approval request %+v", call, q.Request)
			}
			c.decide(q.ID, d)
		}
		end := c.Await(run)
		if end.State != wire.StateFinal {
			t.Fatalf("%s: %s %s", call, end.State, end.Error)
		}
		return end.Text
	}
	says := func(got string, pieces ...string) {
		t.Helper()
		for _, p := range pieces {
			if !strings.Contains(got, p) {
				t.Fatalf("no %q in %q", p, got)
			}
		}
	}
	inWorkspace := func(name string) string { return filepath.Join(g.Dir, "workspace", name) }

	// Write the program: files are created without approval.
	says(do(`write {"path":"src/greet.sh","content":"# greets\nwhile read name; do\n  echo \"hello $name\"\ndone\n"}`),
		"Created src/greet.sh")
	says(do(`write {"path":"build.sh","content":"set -e\nmkdir -p bin\n{ echo '#!/bin/sh'; cat src/greet.sh; } > bin/greet\nchmod +x bin/greet\nwc -l < bin/greet\n"}`), "Created")
	says(do(`write {"path":"test.sh","content":"[ \"$(echo ada | bin/greet)\" = \"hello ada\" ] && echo PASS\n"}`),
		"Created")

	// Build it: nothing is built if it is denied.
	says(do(`exec {"command":"sh build.sh"}`, wire.Deny), "denied by")
	if _, err := os.Stat(inWorkspace("bin")); !os.IsNotExist(err) {
		t.Fatalf("a denied command was run: %v", err)
	}
	says(do(`exec {"command":"sh build.sh"}`, wire.AllowOnce), "5")

	// Test it: always allowed, so later tests need no approval.
	says(do(`exec {"command":"sh test.sh"}`, wire.AllowAlways), "PASS")
	says(do(`exec {"command":"sh test.sh"}`), "PASS")

	// Serve it in the background, and use it.
	started := regexp.MustCompile(`sessionId (\w+), pid (\d+)`)
	serve := func() (id string, pid int) {
		t.Helper()
		got := do(`exec {"command":"bin/greet","background":true,"timeoutSeconds":0}`, wire.AllowOnce)
		m := started.FindStringSubmatch(got)
		if m == nil {
			t.Fatalf("no server: %q", got)
		}
		pid, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		return m[1], pid
	}
	visit := func(id, name, want string) {
		t.Helper()
		says(do(`process {"action":"write","sessionId":"`+id+`","data":"`+name+`\n"}`), "Sent")
		seen := ""
		waittest.Until(t, "the output "+want, func() bool {
			seen += do(`process {"action":"poll","sessionId":"` + id + `","timeout":200}`)
			return strings.Contains(seen, want)
		})
	}
	id, _ := serve()
	visit(id, "ada", "hello ada")

	// Patch, build and test it: the test must be patched too.
	says(do(`apply_patch {"input":"*** Begin Patch\n*** Update File: src/greet.sh\n@@\n while read name; do\n-  echo \"hello $name\"\n+  echo \"good morning $name\"\n done\n*** End Patch"}`), "M src/greet.sh")
	says(do(`exec {"command":"sh build.sh"}`, wire.AllowOnce), "5")
	says(do(`exec {"command":"sh test.sh"}`), "exit code 1")
	says(do(`edit {"path":"test.sh","oldText":"hello ada","newText":"good morning ada"}`), "test.sh")

	// Stop the server, and serve the new program.
	says(do(`process {"action":"kill","sessionId":"`+id+`"}`), "Ended "+id)
	id, pid := serve()
	visit(id, "eve", "good morning eve")
	says(do(`process {"action":"list"}`), id+"  running", "ended by")
	says(do(`process {"action":"kill","sessionId":"`+id+`"}`), "Ended "+id)
	waittest.Until(t, "the end of the server", func() bool { return !alive(pid) })
}
