package external_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/plugin/channel/external"
	"github.com/chela-ai/chela/internal/plugin/channel/external/externaltest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
)

// asProgram makes this test binary a program: its value is the folder of the chat.
const asProgram = "CHELA_TEST_FOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asProgram); dir != "" {
		os.Exit(externaltest.Folder(dir).Run(context.Background(), os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

var folderAbilities = []string{"edit", "delete", "find"}

// open makes an account of a channel, which is not running.
func open(t *testing.T, o external.Options, env channel.Env, section string) channel.Channel {
	t.Helper()
	if env.Log == nil {
		env.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if env.Report == nil {
		env.Report = func(error) {}
	}
	f, err := external.Factory(o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.New(env, "default", json.RawMessage(section))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// live is a channel that runs before Run is called, for the suite. Run says where the
// messages go.
type live struct {
	channel.Channel
	mu   sync.Mutex
	sink channel.Sink
}

func (l *live) As(target any) bool { return l.Channel.(channel.Varied).As(target) }

func (l *live) Run(ctx context.Context, s channel.Sink) error {
	l.mu.Lock()
	l.sink = s
	l.mu.Unlock()
	<-ctx.Done()
	return ctx.Err()
}

// pass passes a message to the sink, which it waits for.
func (l *live) pass(ctx context.Context, in chela.Inbound) error {
	for ctx.Err() == nil {
		l.mu.Lock()
		s := l.sink
		l.mu.Unlock()
		if s != nil {
			return s(ctx, in)
		}
		time.Sleep(time.Millisecond)
	}
	return ctx.Err()
}

// suite runs the conformance tests with a program that is a chat in folders, whose order
// is that of the real time.
func suite(t *testing.T, options func(dir string) external.Options) {
	t.Parallel()
	channeltest.Suite(t, func(t *testing.T) channeltest.Harness {
		dir := t.TempDir()
		up := make(chan error, 10)
		c := open(t, options(dir), channel.Env{Report: func(err error) { up <- err }}, `{}`)
		l := &live{Channel: c}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = c.Run(ctx, l.pass) }()
		t.Cleanup(func() { cancel(); <-done })
		if err := <-up; err != nil {
			t.Fatal(err)
		}
		at := func(id string) chela.Address {
			return chela.Address{Channel: "folder", Account: "default", Peer: chela.Peer{Kind: chela.Direct, ID: id}}
		}
		f := externaltest.Folder(dir)
		return channeltest.Harness{
			Channel: l, Address: at("7"), Other: at("8"), Once: true,
			Shown: func(a chela.Address) []string { return f.Shown(a.Peer.ID) },
			Say: func(ctx context.Context, in chela.Inbound) error {
				return f.Say(ctx, in.Address.Peer.ID, in.ID, in.Text)
			},
		}
	})
}

func TestSuite(t *testing.T) {
	suite(t, func(dir string) external.Options {
		return external.Options{
			Name: "folder", Command: "/program", Abilities: folderAbilities,
			Broker: &externaltest.Broker{Programs: []externaltest.Program{externaltest.Folder(dir).Run}},
		}
	})
}

func TestSuiteProcess(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	suite(t, func(dir string) external.Options {
		return external.Options{
			Name: "folder", Command: self, Env: map[string]string{asProgram: dir}, Dir: dir, Abilities: folderAbilities,
			Broker: host.Broker{}, Environ: os.Environ(),
		}
	})
}

// example is the folder of the example in the documentation.
const example = "../../../../docs/examples/folderchat"

func TestSuitePython(t *testing.T) {
	if sandbox.Look(os.Environ())("python3") == "" {
		needtest.Missing(t, "python3")
	}
	script, err := filepath.Abs(filepath.Join(example, "folderchat.py"))
	if err != nil {
		t.Fatal(err)
	}
	suite(t, func(dir string) external.Options {
		return external.Options{
			Name:      "folder",
			Command:   "python3",
			Args:      []string{script},
			Env:       map[string]string{"PLUGIN_DATA": dir},
			Dir:       dir,
			Abilities: folderAbilities,
			Broker:    host.Broker{},
			Environ:   os.Environ(),
		}
	})
}

// TestExample checks that the page shows the example as it is.
func TestExample(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/channel-plugin.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"chela.plugin.json", "folderchat.py"} {
		text, err := os.ReadFile(filepath.Join(example, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "\n"+string(text)+"```\n") {
			t.Errorf("docs/channel-plugin.md does not contain %s as it is", name)
		}
		if n := strings.Count(string(text), "\n"); n > 60 {
			t.Errorf("%s has %d lines", name, n)
		}
	}
}
