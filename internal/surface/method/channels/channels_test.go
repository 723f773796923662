package channels_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	got := methodtest.Do[wire.ChannelsStatus](t, h, wire.MethodChannelsStatus, map[string]any{"probe": true, "timeoutMs": 1})
	want := wire.ChannelsStatus{
		Time: got.Time, Order: []string{}, Labels: map[string]string{}, Channels: map[string]wire.ChannelState{},
		Accounts: map[string][]wire.ChannelAccount{}, Defaults: map[string]string{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("without channels: %s", diff)
	}
	why := "no such bot"
	down := wire.ChannelState{Configured: true, Error: &why}
	h.Channels = map[string]wire.ChannelState{"telegram": {Configured: true, Running: true}, "irc": down}
	got = methodtest.Do[wire.ChannelsStatus](t, h, wire.MethodChannelsStatus, nil)
	if diff := cmp.Diff([]string{"irc", "telegram"}, got.Order); diff != "" || got.Labels["irc"] != "Irc" {
		t.Errorf("%s, labels %v", diff, got.Labels)
	}
	if diff := cmp.Diff([]wire.ChannelAccount{{ID: "default", Enabled: true, Configured: true, Error: &why}}, got.Accounts["irc"]); diff != "" {
		t.Error(diff)
	}
	got = methodtest.Do[wire.ChannelsStatus](t, h, wire.MethodChannelsStatus, wire.ChannelsGet{Channel: "telegram"})
	if diff := cmp.Diff([]string{"telegram"}, got.Order); diff != "" {
		t.Error(diff)
	}
}
