package chelatest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
)

func TestDebugCommand(t *testing.T) {
	t.Parallel()
	const conf = `commands: {debug: true, config: true, ownerAllowFrom: ["ann"]}, agents: {defaults: {model: "mock/m"}, list: [{id: "main"}]}`
	synctest.Test(t, func(t *testing.T) {
		r := newRouted(t, conf)
		dir := r.Gateway.Dir
		defer func() { r.stop() }()
		file := func() string {
			b, err := os.ReadFile(filepath.Join(dir, "chela.json"))
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		was := file()
		say := func(text, want string) {
			t.Helper()
			got := r.say(from(func(in *chela.Inbound) { in.Text = text }))
			if got != want && !(strings.HasSuffix(want, "…") && strings.Contains(got, strings.TrimSuffix(want, "…"))) {
				t.Errorf("%q is answered with %q, want %q", text, got, want)
			}
		}
		bob := func(text string) string {
			return r.say(from(func(in *chela.Inbound) {
				in.Text, in.Sender.ID, in.Address.Peer.ID = text, "bob", "bob"
			}))
		}
		say("hi", "m")
		say("/debug", "Nothing of the configuration is overridden.")
		if got := bob("/debug set agents.defaults.model mock/work"); strings.Contains(got, "overrid") {
			t.Errorf("somebody who is not an owner: %q", got)
		}
		say("/debug set agents.defaults.model mock/home", "agents.defaults.model is overridden until the gateway stops.")
		say("hi", "home")
		say("/debug show", "```\nagents.defaults.model = \"mock/home\"\n```")
		say("/config get agents.defaults.model", "home…")
		if got := r.say(inGroup("g", func(in *chela.Inbound) { in.Text = "/debug show" })); !strings.Contains(got,
			"mock/home") {
			t.Errorf("of the owner in a group: %q", got)
		}
		for text, want := range map[string]string{
			"/debug set agents.defaults.maxConcurrent many":               "refused…",
			"/debug set agents.defaults.modell x":                         "refused…",
			"/debug set models.providers.mock.apiKey sk-0123456789abcdef": "may be a secret…",
			"/debug set gateway.port 1234":                                "takes effect after a restart…",
			"/debug set gateway {}":                                       "takes effect after a restart…",
			"/debug set agents.list[0].id ops":                            "is in a list…",
			"/debug unset session.reset":                                  "session.reset is not overridden…",
			"/debug set agents.defaults.model":                            "Usage…",
			"/debug what":                                                 "Usage…",
			"/debug set agents.defaults.model [1":                         "…",
		} {
			say(text, want)
		}
		say("hi", "home")
		if now := file(); now != was {
			t.Errorf("the file was changed: %s", now)
		}

		say("/config set session.reset.mode idle", "session.reset.mode is set; this takes effect immediately.")
		say("hi", "home")
		r.write(dir, conf+`, session: {reset: {mode: "daily"}}`)
		time.Sleep(10 * time.Second)
		say("/config get session.reset.mode", "daily…")
		say("hi", "home")
		if strings.Contains(file(), "mock/home\"") {
			t.Errorf("the override is in the file: %s", file())
		}
		say("/debug set session.reset.mode idle", "session.reset.mode is overridden until the gateway stops.")
		say("/debug unset agents.defaults.model", "agents.defaults.model is not overridden any more.")
		say("hi", "m")
		say("/config get session.reset.mode", "idle…")
		say("/debug reset", "Nothing of the configuration is overridden any more.")
		say("/config get session.reset.mode", "daily…")
		say("/debug set agents.defaults.model mock/work", "agents.defaults.model is overridden until the gateway stops.")
		say("hi", "work")

		r.stop()
		r.fakes = map[string]*channeltest.Fake{"talk": {}, "mail": {}}
		r.Gateway = Start(t, r.options(dir))
		r.Client = r.Gateway.Client()
		say("hi", "m")
		say("/debug show", "Nothing of the configuration is overridden.")
		r.write(dir, strings.Replace(conf, "debug: true, ", "", 1))
		time.Sleep(10 * time.Second)
		say("/debug show", "/debug is disabled. To enable it, run `chela config set commands.debug true`.")
	})
}

func TestConfigCommand(t *testing.T) {
	t.Parallel()
	t.Run("CF-18 only an owner changes the configuration, and only where that is on", func(t *testing.T) {
		t.Parallel()
		const conf = `commands: {config: true, ownerAllowFrom: ["ann"]}, agents: {defaults: {model: "mock/m"}, list: [{id: "main"}]}`
		synctest.Test(t, func(t *testing.T) {
			r := newRouted(t, conf)
			dir := r.Gateway.Dir
			defer func() { r.stop() }()
			changes := func(who string) bool {
				t.Helper()
				before, err := os.ReadFile(filepath.Join(dir, "chela.json"))
				if err != nil {
					t.Fatal(err)
				}
				got := r.say(from(func(in *chela.Inbound) {
					in.Text, in.Sender.ID, in.Address.Peer.ID = "/config set session.reset.mode idle", who, who
				}))
				after, err := os.ReadFile(filepath.Join(dir, "chela.json"))
				if err != nil {
					t.Fatal(err)
				}
				changed := string(before) != string(after)
				if changed != strings.Contains(got, "is set") {
					t.Errorf("%s: changed %t, but the answer is %q", who, changed, got)
				}
				return changed
			}
			if changes("bob") {
				t.Error("somebody who is not an owner changes the configuration")
			}
			r.write(dir, strings.Replace(conf, "config: true", "config: false", 1))
			time.Sleep(10 * time.Second)
			if changes("ann") {
				t.Error("the owner changes the configuration although that is off")
			}
			for _, at := range []string{"talk: {", "default: {"} {
				fixed := "{" + strings.Replace(routedConf, at, at+"configWrites: false, ", 1) + ", " + conf + "}"
				if err := os.WriteFile(filepath.Join(dir, "chela.json"), []byte(fixed), 0o600); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				if changes("ann") {
					t.Errorf("the owner changes the configuration from a chat with %s", fixed)
				}
			}
			r.write(dir, conf)
			time.Sleep(10 * time.Second)
			if !changes("ann") {
				t.Error("the owner cannot change the configuration")
			}
		})
	})
}
