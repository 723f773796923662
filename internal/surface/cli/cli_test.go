package cli_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/app"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/app/tailscale/tailscaletest"
	"github.com/chela-ai/chela/internal/app/tunnel/sshtest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/channel/discord/discordtest"
	"github.com/chela-ai/chela/internal/plugin/channel/telegram/telegramtest"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/internal/surface/cli"
	"github.com/chela-ai/chela/wire"
)

var update = flag.Bool("update", false, "update the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"chela": func() {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
			defer stop()
			os.Exit(cli.Main(ctx, os.Args[1:], app.Build(standard.New())))
		},
		"tailscale": func() { os.Exit(tailscaletest.Main()) },
		"ssh":       func() { os.Exit(sshtest.Main()) },
	})
}

// TestScripts runs the commands as a person does. Each script has its own home
// directory, and the built-in assistant answers.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       *update,
		RequireExplicitExec: false,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("TERM", "dumb")
			e.Setenv("CHELA_DISABLE_BONJOUR", "1") // tell the network nothing
			port, err := freePort()
			e.Setenv("PORT", port)
			e.Setenv("CHELA_GATEWAY_PORT", port) // do not find a gateway of this machine
			platform := telegramtest.New()
			e.Defer(platform.Close)
			platform.Chat(7, "private")
			platform.Chat(8, "private")
			root, _ := platform.Listen()
			e.Setenv("TELEGRAM", fmt.Sprintf(`{"telegram": {"botToken": %q, "apiRoot": %q, "allowFrom": ["7"]}}`,
				telegramtest.Token, root))
			e.Values["telegram"] = platform
			e.Setenv("TELEGRAM_ROOT", root)
			e.Setenv("TELEGRAM_TOKEN", telegramtest.Token)
			e.Setenv("MODEL", modelServer(t)+"/v1")
			other, errOther := discordtest.Listen()
			if errOther != nil {
				return errOther
			}
			e.Defer(other.Close)
			ann := discordtest.User{ID: "7", Username: "ann", GlobalName: "Ann Lee"}
			other.AddUser(ann)
			other.AddGuild("50", discordtest.Channel{ID: "101", Name: "general"}, discordtest.Channel{ID: "102", Name: "ops"})
			other.AddMember("50", discordtest.Member{User: &ann})
			e.Setenv("DISCORD", fmt.Sprintf(`{"discord": {"token": %q, "apiRoot": %q}}`, discordtest.Token, other.Root()))
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"waits":   waits,
			"lines":   lines,
			"keys":    keys,
			"asks":    asks,
			"chat":    chat,
			"says":    says,
			"takes":   takes,
			"tailnet": tailnet,
		},
	})
}

// modelServer returns the address of a server with a model, whose key is "right".
func modelServer(t *testing.T) string {
	s := llmtest.ServerFunc(t, llmtest.OpenAI, func(_ int, r llmtest.ReceivedRequest) llmtest.Step {
		var body struct {
			Messages []struct{ Role, Content json.RawMessage }
		}
		_ = json.Unmarshal(r.Body, &body)
		text := "ok"
		for _, m := range body.Messages {
			if strings.Contains(string(m.Content), "hello") {
				text = "re: hello"
			}
		}
		return llmtest.Say(text)
	})
	s.Key = "right"
	url, _ := s.Listen()
	return url
}

// freePort returns a free port.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// chat checks that one of the messages that the chat 7 shows is the text; with !, none is.
func chat(ts *testscript.TestScript, neg bool, args []string) {
	got := ts.Value("telegram").(*telegramtest.Server).Texts(7)
	if slices.Contains(got, args[0]) == neg {
		ts.Fatalf("the chat shows %q", got)
	}
}

// says lets the person 7 write to the bot.
func says(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: says text")
	}
	ts.Value("telegram").(*telegramtest.Server).Say(7, telegramtest.Person(7, "Ann"), args[0], nil)
}

// tailnet connects as a new device from a machine in the Tailscale network, and checks what the
// gateway answers: tailnet ADDRESS USER 'regexp'.
func tailnet(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: tailnet address user regexp")
	}
	gateway, err := url.Parse("http://127.0.0.1:" + ts.Getenv("PORT"))
	ts.Check(err)
	s := httptest.NewServer(tailscaletest.Forward(gateway, args[0], args[1]))
	defer s.Close()
	c, err := client.Dial(context.Background(), client.Options{
		URL: strings.Replace(s.URL, "http", "ws", 1), Key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)),
		Scopes: []string{wire.ScopeRead}, Once: true,
	})
	got := fmt.Sprint(err)
	if err == nil {
		got = "connected by " + c.Hello().Auth.Method
		c.Close()
	}
	if !regexp.MustCompile(args[2]).MatchString(got) {
		ts.Fatalf("the gateway answers %q", got)
	}
}

// takes sets a variable to what the group of a regular expression matches in the output:
// takes NAME 'regexp'.
func takes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: takes NAME regexp")
	}
	m := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) != 2 {
		ts.Fatalf("%s is not in the output", args[1])
	}
	ts.Setenv(args[0], m[1])
}

// waits runs a command until it succeeds: waits chela health.
func waits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: waits command...")
	}
	for end := time.Now().Add(waittest.Limit); ts.Exec(args[0], args[1:]...) != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			ts.Fatalf("%v did not succeed", args)
		}
	}
}

// lines checks that each line of the output is JSON: lines json.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || args[0] != "json" {
		ts.Fatalf("usage: lines json")
	}
	for line := range strings.Lines(ts.ReadFile("stdout") + ts.ReadFile("stderr")) {
		if !json.Valid([]byte(line)) {
			ts.Fatalf("not JSON: %s", line)
		}
	}
}

// keys checks the keys of the JSON object in the output: keys a b c.
func keys(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: keys name...")
	}
	var object map[string]json.RawMessage
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &object))
	if got := slices.Sorted(maps.Keys(object)); !slices.Equal(got, args) {
		ts.Fatalf("got keys\n%v, want\n%v", got, args)
	}
}

// asks makes devices ask for access, as their first connection does: asks device...
func asks(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: asks device...")
	}
	db, err := sqlite.Open(context.Background(), sqlite.Options{Path: ts.MkAbs(".chela/chela.db")})
	ts.Check(err)
	err = db.Update(context.Background(), store.Synced, func(tx store.Tx) error {
		for i, id := range args {
			who := pairing.Identity{ID: id, Key: "key", Role: wire.RoleOperator,
				Scopes: []chela.Scope{chela.ScopeRead, chela.ScopeWrite}}
			_, err := pairing.Admit(tx.Devices(), who, pairing.Proof{Authority: []chela.Scope{chela.ScopeAdmin}},
				time.Now().Add(time.Duration(i)*time.Millisecond))
			if err != nil {
				return err
			}
		}
		return nil
	})
	ts.Check(errors.Join(err, db.Close()))
}

// exits runs a command and checks its exit code: exits 2 chela nonsense.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		got = e.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
