package chelatest

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/wire"
)

// TestServers reaches servers in the background from later commands, without a question.
func TestServers(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "python3")
	needtest.Program(t, "curl")
	g := Start(t, Options{Model: executes(), Dial: noHosts})
	c := g.Client()
	run := func(session, command, want string) {
		t.Helper()
		if asked, answer := c.execute(session, command, wire.Deny); len(asked) > 0 || !strings.Contains(answer, want) {
			t.Errorf("%s: %s: asks %d times, %s; want %q", session, command, len(asked), answer, want)
		}
	}
	const loop = "until curl -sf %/; do sleep 0.1; done"
	run("one", "mkdir -p site other && echo welcome > site/index.html && echo hello > other/index.html; ls", "site")
	run("one", "cd site && python3 -m http.server 8123 &", "still running in the background")
	run("one", strings.Replace(loop, "%", "localhost:8123", 1), "welcome")
	run("one", "curl -s http://127.0.0.1:8123/", "welcome")
	run("one", "curl -sI localhost:8123", "200 OK")
	run("two", "curl -s localhost:8123; echo code $?", "code 7") // another session has nothing there
	run("two", "cd other && python3 -m http.server 8123 &", "still running in the background")
	run("two", strings.Replace(loop, "%", "localhost:8123", 1), "hello")
	run("one", "curl -s localhost:8123", "welcome")
}
