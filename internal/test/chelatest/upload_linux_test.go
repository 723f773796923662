package chelatest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// peak returns the maximum and the current memory of a process in bytes.
func peak(t testing.TB, pid int) (most, now int64) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmHWM":
			most = n << 10
		case "RssAnon":
			now = n << 10
		}
	}
	return most, now
}

// TestUpload sends a file of the maximum size: the engine uses little more
// memory than the size of the file.
func TestUpload(t *testing.T) {
	if raced {
		t.Skip("the race detector's own memory is counted too")
	}
	srv := llmtest.NewServer(t, llmtest.OpenAI, llmtest.Say("hello"), llmtest.Say("a file"))
	url, _ := srv.Listen()
	cmd, c := startSubprocess(t, t.TempDir(), modelConfig(llmtest.OpenAI, url), "")
	defer cmd.Process.Kill()
	c.Ask("main", "hello")
	before, _ := peak(t, cmd.Process.Pid)
	const size = 19_464_192 // as announced in the hello
	id, err := c.Client.Send(t.Context(), "main", "a file", wire.Attachment{
		MIME: "application/x-thing", FileName: "a.bin", Content: bytes.Repeat([]byte{0, 1, 2, 3}, size/4),
	})
	if err != nil {
		t.Fatal(err)
	}
	if end := c.Await(id); end.Text != "a file" {
		t.Errorf("%s %q %s", end.State, end.Text, end.Error)
	}
	after, _ := peak(t, cmd.Process.Pid)
	t.Logf("a file of %d bytes took %d MB (from %d to %d)", size, (after-before)>>20, before>>20, after>>20)
	const most = 2*wire.MaxPayload + 8<<20 // the frame, the file, and the memory of a run
	if grown := after - before; grown > most {
		t.Errorf("the upload took %d MB, want at most %d", grown>>20, most>>20)
	}
}
