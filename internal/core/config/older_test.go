package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOlder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "chela.json")
	text := `{
		agents: {list: [{agentId: "a"}, {id: "b", agentId: "c"}], defaults: {imageGenerationModel: "openai/x"}},
		channels: {telegram: {dm: {policy: "open", allowFrom: ["1"]}, allowFrom: ["2"]}},
		tts: {providers: {eleven: {voice: "v"}}},
	}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := Options{}.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var edits []Edit
	for _, r := range tree.Older() {
		got = append(got, r.From+">"+r.To)
		edits = append(edits, r.Edits...)
	}
	want := "agents.list[0].agentId>agents.list[0].id agents.defaults.imageGenerationModel>agents.defaults.mediaModels.image " +
		"tts.providers.eleven.voice>tts.providers.eleven.speakerVoice channels.telegram.dm.policy>channels.telegram.dmPolicy"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("%s\nwant %s", s, want)
	}
	d, err := tree.Draft(edits...)
	if err != nil {
		t.Fatal(err)
	}
	next, err := d.Write()
	if err != nil || len(next.Older()) > 0 {
		t.Errorf("afterwards %v, %v", next.Older(), err)
	}
	if s := string(next.Section("channels.telegram.dmPolicy")); s != `"open"` {
		t.Errorf("dmPolicy is %s", s)
	}
}
