package channels_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	got := methodtest.Do[wire.ChannelsStatus](t, h, wire.MethodChannelsStatus,
		map[string]any{"probe": true, "timeoutMs": 1})
	want := wire.ChannelsStatus{
		Time: got.Time, Order: []string{}, Labels: map[string]string{}, Channels: map[string]wire.ChannelState{},
		Accounts: map[string][]wire.ChannelAccount{}, Defaults: map[string]string{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("without channels: %s", diff)
	}
	why := "no such bot"
	h.Accounts = []channel.Account{{Channel: "irc", ID: "default", Usual: true, Err: errors.New(why)},
		{Channel: "telegram", Aliases: []string{"tg"}, ID: "default"}}
	got = methodtest.Do[wire.ChannelsStatus](t, h, wire.MethodChannelsStatus, nil)
	if diff := cmp.Diff([]string{"irc", "telegram"}, got.Order); diff != "" || got.Labels["irc"] != "Irc" {
		t.Errorf("%s, labels %v", diff, got.Labels)
	}
	if diff := cmp.Diff([]wire.ChannelAccount{{ID: "default", Enabled: true, Configured: true, Error: &why}},
		got.Accounts["irc"]); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"telegram", "tg"} {
		got = methodtest.Do[wire.ChannelsStatus](t, h, wire.MethodChannelsStatus, wire.ChannelsGet{Channel: name})
		if diff := cmp.Diff([]string{"telegram"}, got.Order); diff != "" {
			t.Errorf("CH-23 %s: %s", name, diff)
		}
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	t.Run("CH-21 accounts that work, are refused, hang, and cannot be asked", func(t *testing.T) {
		h := methodtest.New(t, llmtest.NewScript())
		h.Accounts = []channel.Account{
			{Channel: "chat", ID: "good", Usual: true}, {Channel: "chat", ID: "bad"}, {Channel: "chat", ID: "slow"},
			{Channel: "plain", ID: "default"},
		}
		h.Probe = func(ctx context.Context, name string, id chela.AccountID) (bool, error) {
			switch {
			case name == "plain":
				return false, nil
			case id == "bad":
				return true, errors.New("the token is not valid")
			case id == "slow":
				<-ctx.Done()
				return true, ctx.Err()
			}
			return true, nil
		}
		got := methodtest.Do[wire.ChannelsStatus](t, h, wire.MethodChannelsStatus, wire.ChannelsGet{Probe: true, Timeout: 20})
		probes := map[string]string{}
		for name, accounts := range got.Accounts {
			for _, a := range accounts {
				switch {
				case a.Probe == nil:
					probes[name+"/"+a.ID] = "not asked"
				case a.Probe.OK:
					probes[name+"/"+a.ID] = "ok"
				default:
					probes[name+"/"+a.ID] = a.Probe.Error
				}
			}
		}
		want := map[string]string{
			"chat/good":     "ok",
			"chat/bad":      "the token is not valid",
			"chat/slow":     "context deadline exceeded",
			"plain/default": "not asked",
		}
		if diff := cmp.Diff(want, probes); diff != "" {
			t.Error(diff)
		}
		if got.Defaults["chat"] != "good" || got.Channels["chat"].Running || got.Channels["plain"].Error != nil {
			t.Errorf("%+v", got)
		}
		if got := methodtest.Do[wire.ChannelsStatus](t, h, wire.MethodChannelsStatus, nil); got.Accounts["chat"][0].Probe !=
			nil || !got.Channels["chat"].Running {
			t.Errorf("without a probe: %+v", got)
		}
	})
}
