package chelatest

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/plugin/channel/slack/slacktest"
)

// TestSlack talks to a gateway on a fake of Slack.
func TestSlack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slacktest.New(t)
		hc := s.Pipe()
		model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			text := r.Messages[len(r.Messages)-1].PlainText()
			if strings.Contains(text, "weather") {
				return llmtest.Say("It is sunny & **warm**.")
			}
			return llmtest.Say("Hello!")
		})
		section, err := json.Marshal(map[string]any{
			"botToken":    slacktest.BotToken,
			"appToken":    slacktest.AppToken,
			"apiRoot":     s.Root(),
			"allowFrom":   []string{"U1"},
			"groups":      map[string]any{"*": map[string]any{}},
			"groupPolicy": "open",
			"channels":    map[string]any{"*": map[string]any{}},
		})
		if err != nil {
			t.Fatal(err)
		}
		g := Start(t, Options{Model: model, HTTP: hc, Config: Config{"channels.slack": section}})
		if _, err := s.Say(t.Context(), "D1", "", "U1", "hi"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := strings.Join(s.Texts("D1", ""), "|"); got != "Hello!" {
			t.Errorf("the direct chat contains %q", got)
		}
		root := s.Write("C1", "", "U2", "What a day")
		if _, err := s.Say(t.Context(), "C1", root, "U1", "<@UBOT> how is the weather?"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := strings.Join(s.Texts("C1", root), "|"); !strings.Contains(got, "sunny & ") {
			t.Errorf("the thread contains %q", got)
		}
		if got := s.Texts("C1", ""); len(got) > 0 {
			t.Errorf("the channel contains %q", got)
		}
		g.Stop()
	})
}
