package outbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

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

func TestRowsWithMore(t *testing.T) {
	t.Parallel()
	yes := [][]chela.Button{{{Label: "Yes", Data: "yes"}}}
	rows := Rows(Row{Key: "r", Media: []chela.Media{{Name: "a"}}, Buttons: yes}, "one two\n\n\n\nthree",
		chunk.Options{Limit: 8})
	if len(rows) != 2 || len(rows[0].Media) != 1 || len(rows[1].Media) != 0 {
		t.Fatalf("the file is not with the first part only: %+v", rows)
	}
	if rows[0].Buttons != nil || !cmp.Equal(rows[1].Buttons, yes) {
		t.Errorf("the buttons are not with the last part only: %+v", rows)
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	buttons := [][]chela.Button{{{Label: "Yes", Data: "yes"}, {Label: "Never", Data: "/deny 1"}}, {},
		{{Label: "Help", URL: "https://a.example"}}}
	const lines = "- Yes\n- Never: /deny 1\n- Help: https://a.example"
	for text, want := range map[string]string{"Sure?\n": "Sure?\n\n" + lines, "": lines} {
		if got := Labels(text, buttons); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := Labels("a\n", [][]chela.Button{{}}); got != "a\n" {
		t.Errorf("without buttons: %q", got)
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
		{"two messages", []Row{row(here, Sent, extra+":0", "the answer"), row(here, Sent, ExtraKey("r", "b")+":0",
			"in parts")}, false},
		{"another chat", []Row{row(elsewhere(func(a *chela.Address) { a.Peer.ID = "8" }), Sent, extra+":0",
			"the answer in parts")}, false},
		{"a group with the same id", []Row{row(elsewhere(func(a *chela.Address) { a.Peer.Kind = chela.Group }), Sent,
			extra+":0", "the answer in parts")}, false},
		{"another account", []Row{row(elsewhere(func(a *chela.Address) { a.Account = "b" }), Sent, extra+":0",
			"the answer in parts")}, false},
		{"another channel", []Row{row(elsewhere(func(a *chela.Address) { a.Channel = "other" }), Sent, extra+":0",
			"the answer in parts")}, false},
		{"another thread", []Row{row(elsewhere(func(a *chela.Address) { a.Thread = "" }), Sent, extra+":0",
			"the answer in parts")}, false},
		{"failed", []Row{row(here, Failed, extra+":0", "the answer in parts")}, false},
		{"answer of a run", []Row{row(here, Sent, "r:0", "the answer in parts")}, false},
	} {
		if got := AlreadySent(c.rows, here, "the answer in parts"); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestRest divides answers, of which the first pieces were sent already.
func TestRest(t *testing.T) {
	t.Parallel()
	to := chela.Address{Channel: "talk"}
	for name, answer := range map[string]string{
		"words":      strings.Repeat("Some **words** and more. ", 20),
		"emphasised": "First **" + strings.Repeat("word ", 40) + "end** and more.",
		"code":       "Some text:\n```go\n" + strings.Repeat("code\n", 60) + "```\nthe last.",
		"Chinese":    strings.Repeat("没有空格的句子。", 40),
		"one word":   strings.Repeat("abcdefghij", 40),
	} {
		pieces := Rows(Row{Key: BlockKey("r1", time.Unix(1, 0), 0), Run: "r1", Address: to}, answer,
			chunk.Options{Limit: 100})
		if len(pieces) < 3 {
			t.Fatalf("%s: %d pieces", name, len(pieces))
		}
		for i := range pieces {
			pieces[i].Seq = int64(i)
		}
		last := answer
		for n := range len(pieces) + 1 {
			rest := Rest(pieces[:n], to, answer)
			if !strings.HasSuffix(last, rest) || n > 0 && len(rest) == len(last) {
				t.Errorf("%s: after %d of %d pieces: %q", name, n, len(pieces), rest)
			}
			last = rest
		}
		if strings.TrimSpace(last) != "" {
			t.Errorf("%s: after all pieces: %q", name, last)
		}
	}
}
