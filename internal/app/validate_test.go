package app

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/test/toy/postbox"
)

// TestValidate checks configurations with a build that has a channel. Nothing is
// started, and nothing is written.
func TestValidate(t *testing.T) {
	t.Parallel()
	r := new(standard.Registry)
	standard.Register(r)
	r.Channel(new(postbox.Platform).Factory())
	for _, tt := range []struct{ text, want string }{
		{`{}`, ""},
		{`{channels: {postbox: {accounts: {home: {number: "1"}, work: {number: "2"}}}}}`, ""},
		{`{channels: {postbox: {accounts: {home: {}}}}}`, "number is missing"},
		{`{channels: {postbox: {accounts: {home: {number: "1"}, work: {number: "1"}}}}}`,
			"the accounts home and work are the same"},
		{`{gateway: {port: 70000}}`, "gateway.port"},
		{`{hooks: {path: "../.."}}`, "hooks.path"},
		{fmt.Sprintf(`{agents: {defaults: {workspace: %q}}}`, os.Args[0]), "is not a folder"},
		{fmt.Sprintf(`{agents: {defaults: {workspace: %q}}}`, filepath.Join(os.Args[0], "a", "b")),
			os.Args[0] + " is not a folder"},
		{`{gateway: {bind: "custom"}}`, "customBindHost"},
		{`{gateway: {controlUi: {root: "/nowhere/ui"}}}`, "gateway.controlUi.root"},
		{`{gateway: {controlUi: {root: "/nowhere/ui", enabled: false}}}`, ""},
		{`{gateway: {tls: {enabled: true}}}`, "gateway.tls"},
		{`{gateway: {tls: {enabled: true, autoGenerate: true}}}`, ""},
		{`{gateway: {auth: {mode: "password"}}}`, "gateway.auth.password"},
		{`{gateway: {auth: {mode: "trusted-proxy"}}}`, "gateway.trustedProxies"},
		{`{gateway: {trustedProxies: ["nonsense"]}}`, "gateway.trustedProxies"},
		{`{gateway: {auth: {token: "env:CHELA_TEST_MISSING"}}}`, "gateway.auth.token"},
		{`{session: {reset: {mode: "daily", atHour: 99}}}`, "session.reset.atHour: 99, want an hour from 0 to 23"},
		{`{session: {reset: {mode: "daily", atHour: 0}}}`, ""},
		{`{session: {reset: {mode: "idle", idleMinutes: -1}}}`, "session.reset.idleMinutes"},
		{`{logging: {redactPatterns: ["("]}}`, "logging.redactPatterns"},
		{`{agents: {defaults: {userTimezone: "Mars/Base"}}}`, "userTimezone"},
		{`{agents: {defaults: {model: "nonsense"}}}`, "agents.defaults.model"},
	} {
		s := home(t, tt.text)
		s.State = filepath.Join(s.State, "state")
		tree, err := config.Options{}.Load(s.Config)
		if err != nil {
			t.Fatalf("%s: %v", tt.text, err)
		}
		err = Build(r).Validate(t.Context(), s, tree)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.text, err, tt.want)
		}
		if made, _ := filepath.Glob(s.State); made != nil {
			t.Errorf("%s: made %q", tt.text, made)
		}
	}
}

func TestCreatable(t *testing.T) {
	t.Parallel()
	s := home(t, offlineConf)
	file := filepath.Join(s.State, "file")
	write(t, file, "")
	read := func(workspace string) *config.Tree {
		tree, err := config.Options{}.ReadText(s.Config,
			[]byte(`{agents: {defaults: {workspace: `+strconv.Quote(workspace)+`}}}`))
		if err != nil {
			t.Fatal(err)
		}
		return tree
	}
	if err := creatable(s, read(filepath.Join(s.State, "two", "levels"))); err != nil {
		t.Error(err)
	}
	if list, err := os.ReadDir(s.State); err != nil || len(list) != 2 {
		t.Errorf("it left something: %v, %v", list, err)
	}
	if err := workspaces(s, read(filepath.Join(file, "below"))); err == nil ||
		!strings.HasSuffix(err.Error(), "file is not a folder") {
		t.Errorf("below a file: %v", err)
	}
	if runtime.GOOS != "linux" {
		return
	}
	if err := creatable(s, read("/proc/none")); err == nil ||
		err.Error() != "the workspace of agent main, /proc/none: no folder can be made in /proc: no such file or directory" {
		t.Errorf("where no folder can be made: %v", err)
	}
}
