//go:build linux || darwin

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/plugin/channel/telegram/telegramtest"
)

// TestOnboard leads a person from an empty home to a bot that answers them.
func TestOnboard(t *testing.T) {
	t.Parallel()
	platform := telegramtest.New()
	t.Cleanup(platform.Close)
	platform.Chat(7, "private")
	root, _ := platform.Listen()
	home := t.TempDir()
	conf := filepath.Join(home, ".chela", "chela.json")
	if err := os.Mkdir(filepath.Dir(conf), 0o700); err != nil {
		t.Fatal(err)
	}
	before := "{channels: {defaults: {}}, session: {dmScope: \"per-peer\"}, /* mine */ }\n"
	if err := os.WriteFile(conf, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func() string {
		b, err := os.ReadFile(conf)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}

	// OB-08 Ctrl-C leaves the configuration as it was.
	s := startIn(t, home, "onboard")
	s.sees("Go on? [Y/n]")
	s.types("\n")
	s.sees("Which one [1]: ")
	s.types("1\n")
	s.sees("API key (not shown): ")
	s.hides()
	s.types("\x03")
	s.exits(130)
	if got := read(); got != before {
		t.Errorf("OB-08 after Ctrl-C the configuration is %s", got)
	}

	s = startIn(t, home, "onboard", "--accept-risk", "--set", "apiRoot="+root)
	s.sees("Which one [1]: ")
	s.types("3\n") // no model
	s.sees("model offline/assistant")
	s.sees("none now")
	s.counts("Which one [1]: ", 2)
	s.types(number(s.seen(), "telegram") + "\n")
	s.sees("token of the bot (not shown): ")
	s.hides()
	s.types("123456:wrong\n")
	s.sees("the settings were not kept")
	if strings.Contains(read(), "telegram") {
		t.Errorf("after a wrong token the configuration is %s", read())
	}
	s.sees("Try again? [Y/n]")
	s.types("\n")
	s.counts("token of the bot (not shown): ", 2)
	s.hides()
	s.types(telegramtest.Token + "\n")
	s.sees("telegram is connected")
	s.sees("Now write to the assistant on telegram")
	platform.Say(7, telegramtest.Person(7, "Ann"), "hello", nil)
	s.sees("Ann (7) got the code ")
	s.sees("Is that you? [Y/n]")
	s.types("y\n")
	s.sees("Ann is the owner.")
	s.sees("Start the gateway now? [Y/n]")
	s.types("y\n")
	s.sees("ws://")
	platform.Say(7, telegramtest.Person(7, "Ann"), "/whoami", nil)
	answered := func() bool { return strings.Contains(strings.Join(platform.Texts(7), "\n"), "telegram") }
	if err := platform.Await(t.Context(), answered); err != nil {
		t.Errorf("%v: the chat shows %q", err, platform.Texts(7))
	}
	if got := read(); !strings.Contains(got, "/* mine */") || !strings.Contains(got, "telegram:7") {
		t.Errorf("the configuration is %s", got)
	}
	if strings.Contains(s.seen(), telegramtest.Token) {
		t.Error("the terminal shows the token")
	}
	s.types("\x03")
	s.exits(0)
}

// number returns the number before an option in a list.
func number(screen, option string) string {
	for line := range strings.Lines(screen) {
		if f := strings.Fields(line); len(f) >= 2 && f[1] == option {
			return f[0]
		}
	}
	return ""
}
