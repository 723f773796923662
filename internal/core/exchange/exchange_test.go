package exchange_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/exchange"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		raw   string
		turns int
		want  string // in the error
	}{
		{`{}`, 5, ""},
		{`{"maxPingPongTurns": 0}`, 0, ""},
		{`{"maxPingPongTurns": 5}`, 5, ""},
		{`{"maxPingPongTurns": 6}`, 6,
			"session.agentToAgent.maxPingPongTurns: 6 is out of range, it must be between 0 and 5"},
		{`{"maxPingPongTurns": -1}`, -1, "-1 is out of range"},
	} {
		var conf exchange.Config
		if err := json.Unmarshal([]byte(c.raw), &conf); err != nil {
			t.Fatal(err)
		}
		err := conf.Check("session.agentToAgent")
		if conf.Turns() != c.turns || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %d turns, %v; want %d, %q", c.raw, conf.Turns(), err, c.turns, c.want)
		}
	}
}

func TestStep(t *testing.T) {
	t.Parallel()
	id := exchange.IDOf("call")
	if id != exchange.IDOf("call") || id == exchange.IDOf("other") {
		t.Error("the id does not depend on the call alone")
	}
	first := exchange.Step{Exchange: id}
	for _, s := range []exchange.Step{first, first.Next(), first.Next().Next(), first.Last()} {
		got, ok := exchange.StepOf(s.Origin("agent:main:main"))
		if !ok || got != s || got.First() != first || s != first && s.ID() == first.ID() {
			t.Errorf("%s: %+v, %v", s.ID(), got, ok)
		}
	}
	if s, ok := exchange.StepOf(chela.Origin{Kind: chela.OriginAgent, ID: first.ID()}); ok {
		t.Errorf("another message of an agent is %+v", s)
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	good := exchange.Request{Key: " main ", Text: " hi\n"}
	if err := good.Check(); err != nil || good.Key != "main" || good.Text != "hi" {
		t.Errorf("%+v, %v", good, err)
	}
	for want, q := range map[string]exchange.Request{
		"give one of them":                         {Key: "a", Label: "b", Text: "x"},
		"is required: say to which":                {Text: "x"},
		"message is required":                      {Key: "a", Text: "\n"},
		"at most 32 KB":                            {Key: "a", Text: strings.Repeat("x", exchange.MaxText+1)},
		"timeoutSeconds must be between 0 and 600": {Key: "a", Text: "x", Wait: exchange.MaxWait + time.Second},
	} {
		if err := q.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	const from = "agent:main:main"
	text := exchange.MessageText(from, "first\n\nsecond")
	if !strings.HasPrefix(text,
		"[Inter-session message] sourceSession=agent:main:main sourceTool=sessions_send isUser=false\nfirst\n\nsecond\n") {
		t.Errorf("message: %q", text)
	}
	if got := exchange.Message(text); got != "first\n\nsecond" {
		t.Errorf("read again: %q", got)
	}
	late := exchange.LateText(from, "the question", exchange.Result{Status: exchange.OK, Reply: "a</reply>b"})
	if strings.Count(late, "</reply>") != 1 || !strings.Contains(late, `"the question"`) {
		t.Errorf("late: %q", late)
	}
	if got := exchange.Short(strings.Repeat("x", 20_000)); len(got) > 17_000 ||
		!strings.Contains(got, "sessions_history has the whole text") {
		t.Errorf("a long answer has %d bytes", len(got))
	}
	if got := exchange.AnnounceText(from, strings.Repeat("m", 9000), strings.Repeat("r", 9000),
		strings.Repeat("l", 9000)); len(got) > 4000 {
		t.Errorf("the last step has %d bytes", len(got))
	}
}
