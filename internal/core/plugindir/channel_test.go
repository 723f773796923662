package plugindir_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/plugindir"
)

func TestChannel(t *testing.T) {
	t.Parallel()
	manifest := func(channel string) files {
		return files{"chela.plugin.json": `{id: "my.box", configSchema: {}, channel: ` + channel + `}`, "box.py": ""}
	}
	for channel, want := range map[string]string{
		`{name: "box", process: {command: "python3", args: ["./box.py"]}, abilities: ["edit"], limits: {text: 9, editMs: 5}, hints: ["a\nb"]}`: "",
		`{name: "box"}`:                          "channel: process.command is missing",
		`5`:                                      "channel: want an object",
		`{process: {command: "x"}}`:              `channel: name "my.box"`,
		`{name: "Box", process: {command: "x"}}`: `channel: name "Box"`,
		`{name: "user", process: {command: "x"}}`:                                                 `channel: name "user"`,
		`{name: "local", process: {command: "x"}}`:                                                `channel: name "local"`,
		`{name: "webhook", process: {command: "x"}}`:                                              `channel: name "webhook"`,
		`{name: "box", process: {command: "../x"}}`:                                               "channel.process: command",
		`{name: "box", process: {url: "https://x.org"}}`:                                          "channel: process.command is missing",
		`{name: "box", process: {command: "x"}, limits: {text: -1}}`:                              "channel: limits.text is -1",
		`{name: "box", process: {command: "x"}, limits: {editMs: 1000000000}}`:                    "channel: limits.editMs",
		`{name: "box", process: {command: "x"}, hints: [` + strings.Repeat(`"x",`, 11) + `]}`:     "more than 10 hints",
		`{name: "box", process: {command: "x"}, abilities: [` + strings.Repeat(`"x",`, 51) + `]}`: "more than 50 abilities",
		`{name: "` + strings.Repeat("x", 65) + `", process: {command: "x"}}`:                      "channel: name",
		`{name: "box", process: {command: "x", args: ["./../y"]}}`:                                "channel.process: args",
		`{name: "box", process: {command: "x", transport: "sse"}}`:                                "channel.process: ",
		`{name: "box", process: {command: "x", cwd: "/etc"}}`:                                     "channel.process: cwd",
	} {
		p, err := plugindir.Read(fill(t, filepath.Join(t.TempDir(), "box"), manifest(channel)))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, want %q", channel, err, want)
		}
		if err == nil && (p.Channel.Text != 9 || p.Channel.EditMS != 5 || !slices.Equal(p.Channel.Hints, []string{"a b"}) ||
			!slices.Equal(p.Channel.Abilities, []string{"edit"}) || len(p.Unsupported) > 0) {
			t.Errorf("%+v, unsupported %q", p.Channel, p.Unsupported)
		}
	}
}

func TestChannelProgram(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	fill(t, filepath.Join(plugindir.Dir(h.state), "box"), files{
		"chela.plugin.json": `{id: "box", configSchema: {}, channel: {process: {command: "python3", args: ["./box.py"], env: {MODE: "${PLUGIN_DATA}/x"}}, abilities: ["edit"]}}`, "box.py": "",
	})
	if _, ok, err := h.find(t).ChannelProgram("/data"); ok || err != nil {
		t.Errorf("a plug-in that is not enabled: %v, %v", ok, err)
	}
	p := h.enable(t, "box", `{}`)
	s, ok, err := p.ChannelProgram("/data")
	if err != nil || !ok || s.Env["MODE"] != "/data/x" || s.Env["PLUGIN_DATA"] != "/data" || s.Rights == nil ||
		s.Check() != nil || s.Dir != p.Dir {
		t.Errorf("%+v, %v, %v", s, ok, err)
	}
	if !has(p.Abilities(), "adds the channel box, which brings messages and gets the answers") ||
		!has(p.Abilities(), "runs a program: python3 ./box.py (confined") {
		t.Errorf("%q", p.Abilities())
	}
}
