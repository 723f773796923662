package admission_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/admission"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
)

func direct(sender string) chela.Inbound {
	return chela.Inbound{
		Sender: chela.Sender{ID: sender, Name: "name of " + sender}, Text: "hello",
		Address: chela.Address{Channel: "telegram", Account: "default", Peer: chela.Peer{Kind: chela.Direct, ID: sender}},
	}
}

func group(id, sender string) chela.Inbound {
	in := direct(sender)
	in.Address.Peer = chela.Peer{Kind: chela.Group, ID: id}
	return in
}

func TestDecide(t *testing.T) {
	t.Parallel()
	yes, no, three := true, false, 3
	groups := map[string]map[string][]string{"family": {"telegram": {"7"}, "*": {"telegram:8"}}}
	bot, mention := direct("9"), direct("9")
	bot.Sender.Bot, mention.Sender.Bot, mention.Mentioned = true, true, true
	server := group("room", "7")
	server.Guild = "g1"
	topic := group("g", "7")
	topic.Address.Thread = "42"
	for _, c := range []struct {
		name  string
		rules admission.Rules
		in    chela.Inbound
		guest bool
		want  admission.Verdict
	}{
		{name: "SE-01 a stranger", in: direct("7"), want: admission.Verdict{Outcome: admission.Stranger}},
		{name: "a guest", in: direct("7"), guest: true,
			want: admission.Verdict{Outcome: admission.Admit, Named: true, Unprompted: true}},
		{name: "a listed person", rules: admission.Rules{Allow: []string{"7"}}, in: direct("7"),
			want: admission.Verdict{Outcome: admission.Admit, Named: true, Unprompted: true}},
		{name: "listed with the channel", rules: admission.Rules{Allow: []string{"telegram:7"}}, in: direct("7"),
			want: admission.Verdict{Outcome: admission.Admit, Named: true, Unprompted: true}},
		{name: "listed on another channel", rules: admission.Rules{Allow: []string{"signal:7"}, DM: admission.Listed},
			in: direct("7"), want: admission.Verdict{Reason: "the sender is not in allowFrom"}},
		{name: "a sender whose id is *", rules: admission.Rules{Allow: []string{"*"}}, in: direct("*"),
			want: admission.Verdict{Outcome: admission.Admit, Unprompted: true}},
		{name: "SE-05 open without *", rules: admission.Rules{DM: admission.Open, Allow: []string{"8"}}, in: direct("7"),
			want: admission.Verdict{Reason: "the sender is not in allowFrom"}},
		{name: "open", rules: admission.Rules{DM: admission.Open, Allow: []string{"*"}}, in: direct("7"),
			want: admission.Verdict{Outcome: admission.Admit, Unprompted: true}},
		{name: "SE-06 disabled", rules: admission.Rules{DM: admission.Disabled, Allow: []string{"7"}}, in: direct("7"),
			guest: true, want: admission.Verdict{Reason: "direct chats are disabled"}},
		{name: "an unknown policy", rules: admission.Rules{DM: "paring"}, in: direct("7"),
			want: admission.Verdict{Reason: "unknown dmPolicy paring"}},
		{name: "an access group", rules: admission.Rules{Allow: []string{"accessGroup:family"}, Groups: groups},
			in: direct("7"), want: admission.Verdict{Outcome: admission.Admit, Named: true, Unprompted: true}},
		{name: "an access group for all channels", rules: admission.Rules{Allow: []string{"accessGroup:family"},
			Groups: groups}, in: direct("8"), want: admission.Verdict{Outcome: admission.Admit, Named: true, Unprompted: true}},
		{name: "SE-10 a missing access group", rules: admission.Rules{DM: admission.Listed,
			Allow: []string{"accessGroup:friends"}, Groups: groups}, in: direct("7"),
			want: admission.Verdict{Reason: "the sender is not in allowFrom"}},
		{name: "a program", rules: admission.Rules{DM: admission.Open, Allow: []string{"*"}}, in: bot,
			want: admission.Verdict{Reason: "the sender is a program (allowBots)"}},
		{name: "a program that is heard", rules: admission.Rules{DM: admission.Open, Allow: []string{"*"},
			Bots: admission.EveryBot}, in: bot, want: admission.Verdict{Outcome: admission.Admit, Unprompted: true}},
		{name: "a program in private, with mentions", rules: admission.Rules{DM: admission.Open, Allow: []string{"*"},
			Bots: admission.BotsMention}, in: mention, want: admission.Verdict{Outcome: admission.Admit, Unprompted: true}},

		{name: "SE-07 a guest in a group", in: group("g", "7"), guest: true,
			want: admission.Verdict{Reason: "the sender is not in groupAllowFrom"}},
		{name: "a listed person in a group", rules: admission.Rules{Allow: []string{"7"}, History: 50}, in: group("g", "7"),
			want: admission.Verdict{Outcome: admission.Admit, Named: true, History: 50}},
		{name: "listed for groups only", rules: admission.Rules{Allow: []string{"7"}, GroupAllow: []string{}},
			in: group("g", "7"), want: admission.Verdict{Reason: "the sender is not in groupAllowFrom"}},
		{name: "open groups", rules: admission.Rules{Group: admission.Open}, in: group("g", "7"),
			want: admission.Verdict{Outcome: admission.Admit}},
		{name: "no groups", rules: admission.Rules{Group: admission.Disabled, Allow: []string{"7"}}, in: group("g", "7"),
			want: admission.Verdict{Named: true, Reason: "groups are disabled"}},
		{name: "TG-13 another group than the listed ones", rules: admission.Rules{Group: admission.Open,
			Chats: map[string]admission.Chat{"h": {}}}, in: group("g", "7"),
			want: admission.Verdict{Reason: "the group is not in groups"}},
		{name: "a closed group among all", rules: admission.Rules{Group: admission.Open,
			Chats: map[string]admission.Chat{"*": {}, "g": {Closed: true}}}, in: group("g", "7"),
			want: admission.Verdict{Reason: "the group is not in groups"}},
		{name: "a group's own people", rules: admission.Rules{Allow: []string{"1"},
			Chats: map[string]admission.Chat{"g": {Allow: []string{"7"}}}}, in: group("g", "7"),
			want: admission.Verdict{Outcome: admission.Admit, Named: true}},
		{name: "the rules of a group are over those of all", rules: admission.Rules{Allow: []string{"7"},
			Chats: map[string]admission.Chat{"*": {Unprompted: &no, History: &three}, "g": {Unprompted: &yes}}},
			in: group("g", "7"), want: admission.Verdict{Outcome: admission.Admit, Named: true, Unprompted: true, History: 3}},
		{name: "a topic", rules: admission.Rules{Allow: []string{"7"},
			Chats: map[string]admission.Chat{"g": {Topics: map[string]admission.Chat{"42": {Unprompted: &yes}}}}}, in: topic,
			want: admission.Verdict{Outcome: admission.Admit, Named: true, Unprompted: true}},
		{name: "a room of a listed server", rules: admission.Rules{Allow: []string{"7"},
			Chats: map[string]admission.Chat{"guild:g1": {}}}, in: server,
			want: admission.Verdict{Outcome: admission.Admit, Named: true}},
		{name: "another room of a server with listed rooms", rules: admission.Rules{Allow: []string{"7"},
			Chats: map[string]admission.Chat{"guild:g1": {Closed: true}, "other": {}}}, in: server,
			want: admission.Verdict{Named: true, Reason: "the group is not in groups"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.rules.Decide(c.in, c.guest); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestQuotes(t *testing.T) {
	t.Parallel()
	in := group("g", "7")
	in.Quote = chela.Quote{Sender: chela.Sender{ID: "9"}, Text: "quoted"}
	for v, want := range map[admission.Visibility]bool{
		"":                  true,
		admission.SeeAll:    true,
		admission.SeeListed: false,
		admission.SeeQuotes: true,
	} {
		r := admission.Rules{Allow: []string{"7"}, Visibility: v}
		if got := r.Quotes(in); got != want {
			t.Errorf("%q: %v", v, got)
		}
		friend := in
		friend.Quote.Sender.ID = "7"
		if !r.Quotes(friend) {
			t.Errorf("%q: a listed person's text is not quoted", v)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	r := admission.Rules{DM: admission.Pairing, Group: admission.Open,
		Chats: map[string]admission.Chat{"g": {Policy: admission.Disabled}}}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	for want, r := range map[string]admission.Rules{
		`dmPolicy: "everyone"`: {DM: "everyone"}, `groupPolicy: "pairing"`: {Group: admission.Pairing},
		`contextVisibility: "some"`: {Visibility: "some"},
		`groups.g.groupPolicy: "x"`: {Chats: map[string]admission.Chat{"g": {Policy: "x"}}},
	} {
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestGuests(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: t.TempDir() + "/chela.db"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	now := time.Now().Round(0)
	do := func(f func(admission.Table) error) error {
		return db.Update(t.Context(), store.Synced, func(tx store.Tx) error { return f(tx.Guests()) })
	}
	ask := func(sender string, at time.Time) (g admission.Guest, created bool) {
		t.Helper()
		if err := do(func(tab admission.Table) (err error) {
			g, created, err = admission.Ask(tab, direct(sender), at)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return g, created
	}
	approve := func(code string, at time.Time) (g admission.Guest, err error) {
		err = do(func(tab admission.Table) error { g, err = admission.Approve(tab, "telegram", "", code, at); return err })
		return g, err
	}
	first, created := ask("1", now)
	if !created || len(first.Code) != 8 || strings.Trim(first.Code, "ABCDEFGHJKLMNPQRSTUVWXYZ23456789") != "" {
		t.Errorf("%+v, %v", first, created)
	}
	t.Run("SE-01 a second message within the hour gets no code", func(t *testing.T) {
		if _, again := ask("1", now.Add(59*time.Minute)); again {
			t.Error("a second code")
		}
	})
	t.Run("SE-02 the fourth stranger gets no code", func(t *testing.T) {
		for i := range 2 {
			if _, ok := ask(fmt.Sprint("more", i), now); !ok {
				t.Errorf("stranger %d", i+2)
			}
		}
		if _, ok := ask("fourth", now); ok {
			t.Error("the fourth has a code")
		}
		other := direct("5")
		other.Address.Account = "work"
		if err := do(func(tab admission.Table) error {
			_, ok, err := admission.Ask(tab, other, now)
			if !ok {
				t.Error("another account has no place")
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	})
	t.Run("SE-03 a code is valid for an hour", func(t *testing.T) {
		if _, err := approve(first.Code, now.Add(61*time.Minute)); chela.CodeOf(err) != chela.CodeNotFound {
			t.Error(err)
		}
		if next, ok := ask("1", now.Add(61*time.Minute)); !ok || next.Code == first.Code {
			t.Errorf("after the hour: %+v, %v", next, ok)
		}
	})
	t.Run("one of two approvals wins", func(t *testing.T) {
		g, ok := ask("7", now.Add(3*time.Hour))
		if !ok {
			t.Fatal("no code")
		}
		if got, err := approve(" "+strings.ToLower(g.Code)+"\n", now.Add(3*time.Hour)); err != nil || got.ID != "7" ||
			got.Code != "" || got.Admitted.IsZero() {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := approve(g.Code, now.Add(3*time.Hour)); chela.CodeOf(err) != chela.CodeNotFound {
			t.Errorf("the second approval: %v", err)
		}
		if _, err := approve("", now.Add(3*time.Hour)); err == nil {
			t.Error("an empty code admits somebody")
		}
	})
	t.Run("a denied request is gone", func(t *testing.T) {
		g, _ := ask("8", now.Add(6*time.Hour))
		if err := do(func(tab admission.Table) error {
			_, err := admission.Deny(tab, "telegram", "default", g.Code, now.Add(6*time.Hour))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		err := db.View(t.Context(),
			func(r store.Reader) error { _, err := r.Guests().Get("telegram", "default", "8"); return err })
		if !errors.Is(err, chela.ErrNotFound) {
			t.Error(err)
		}
	})
}
