package outbox

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/chunk"
)

func TestRows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{" \n \n", nil},
		{"hello", []string{"r:0 0 hello pending"}},
		{"one two\n\n\n\n\n\n\n\n\n\n\n\n\n\nthree ", []string{"r:0 0 one two pending", "r:1 1 three pending"}},
		{"  code\n", []string{"r:0 0   code pending"}},
	} {
		var got []string
		for _, r := range Rows(Row{Key: "r"}, c.text, chunk.Options{Limit: 10}) {
			got = append(got, fmt.Sprint(r.Key, " ", r.Part, " ", r.Text, " ", r.State))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestAlreadySent(t *testing.T) {
	t.Parallel()
	here := chela.Address{Channel: "fake", Account: "a", Thread: "t", Peer: chela.Peer{Kind: chela.Direct, ID: "7"}}
	elsewhere := func(f func(*chela.Address)) chela.Address {
		a := here
		f(&a)
		return a
	}
	row := func(to chela.Address, state State, key, text string) Row {
		return Row{Key: key, Address: to, State: state, Text: text}
	}
	extra := ExtraKey("r", "a")
	for _, c := range []struct {
		name string
		rows []Row
		want bool
	}{
		{"no rows", nil, false},
		{"sent", []Row{row(here, Sent, extra+":0", "the  answer\nin parts")}, true},
		{"pending", []Row{row(here, Pending, extra+":0", "the answer in parts")}, true},
		{"in two rows", []Row{row(here, Sent, extra+":0", "the answer"), row(here, Sent, extra+":1", "in parts")}, true},
		{"only a part", []Row{row(here, Sent, extra+":0", "the answer")}, false},
		{"two messages", []Row{row(here, Sent, extra+":0", "the answer"), row(here, Sent, ExtraKey("r", "b")+":0", "in parts")}, false},
		{"another chat", []Row{row(elsewhere(func(a *chela.Address) { a.Peer.ID = "8" }), Sent, extra+":0", "the answer in parts")}, false},
		{"a group with the same id", []Row{row(elsewhere(func(a *chela.Address) { a.Peer.Kind = chela.Group }), Sent, extra+":0", "the answer in parts")}, false},
		{"another account", []Row{row(elsewhere(func(a *chela.Address) { a.Account = "b" }), Sent, extra+":0", "the answer in parts")}, false},
		{"another channel", []Row{row(elsewhere(func(a *chela.Address) { a.Channel = "other" }), Sent, extra+":0", "the answer in parts")}, false},
		{"another thread", []Row{row(elsewhere(func(a *chela.Address) { a.Thread = "" }), Sent, extra+":0", "the answer in parts")}, false},
		{"failed", []Row{row(here, Failed, extra+":0", "the answer in parts")}, false},
		{"answer of a run", []Row{row(here, Sent, "r:0", "the answer in parts")}, false},
	} {
		if got := AlreadySent(c.rows, here, "the answer in parts"); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
