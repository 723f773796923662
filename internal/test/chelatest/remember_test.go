package chelatest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// chatting is a gateway with a channel and a scripted model, at a simulated time.
type chatting struct {
	*Gateway
	t     *testing.T
	model *llmtest.Script
	fake  *channeltest.Fake
	sent  int
}

// inChats runs a test in which ann writes in chats. answer is the model, for the last
// message that is not from a tool and the result of the last tool; "": none.
func inChats(t *testing.T, name string, conf Config, answer func(r *llm.Request, said, result string) llmtest.Step,
	f func(k *chatting)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			k := &chatting{t: t, fake: new(channeltest.Fake)}
			k.model = llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
				said, result := "", ""
				for _, m := range r.Messages {
					switch m.Role {
					case llm.RoleUser:
						said, result = m.PlainText(), ""
					case llm.RoleTool:
						result = m.PlainText()
					}
				}
				return answer(r, said, result)
			})
			full := Config{"channels": json.RawMessage(`{"talk": {"allowFrom": ["ann"]}}`)}
			for path, v := range conf {
				full[path] = v
			}
			k.Gateway = Start(t, Options{Model: k.model, Channels: map[string]channel.Channel{"talk": k.fake}, Config: full})
			f(k)
			k.Stop()
		})
	})
}

// say writes in a chat, and returns the answer.
func (k *chatting) say(p chela.Peer, text string) string {
	k.t.Helper()
	a := chela.Address{Channel: "talk", Account: "bot", Peer: p}
	before := len(k.fake.Texts(a))
	k.sent++
	if err := k.fake.Say(k.t.Context(), chela.Inbound{
		ID:        fmt.Sprint(k.sent),
		Address:   a,
		Sender:    chela.Sender{ID: "ann"},
		Text:      text,
		Mentioned: true,
	}); err != nil {
		k.t.Fatal(err)
	}
	time.Sleep(time.Minute)
	return strings.Join(k.fake.Texts(a)[before:], "|")
}

// TestRemember is about what an assistant learns in a chat.
func TestRemember(t *testing.T) {
	t.Parallel()
	ann, group := chela.Peer{Kind: chela.Direct, ID: "ann"}, groupOf("g1")
	inChats(t, "what is to be remembered is a line of a note, and known in the next conversation", nil,
		func(r *llm.Request, said, result string) llmtest.Step {
			switch {
			case result != "":
				return llmtest.Say("done: " + result)
			case strings.HasPrefix(said, "remember that "):
				return llmtest.Call("c"+fmt.Sprint(len(r.Messages)), "write",
					`{"path": "MEMORY.md", "content": "- the door code is 4071\n"}`)
			case strings.HasPrefix(said, "today "):
				return llmtest.Call("c"+fmt.Sprint(len(r.Messages)), "write",
					`{"path": "memory/2000-01-01.md", "content": "The plumber came.\n"}`)
			case strings.HasPrefix(said, "who came"):
				return llmtest.Call("c"+fmt.Sprint(len(r.Messages)), "memory_search", `{"query": "who came: the plumber?"}`)
			}
			return llmtest.Say("ok")
		}, func(k *chatting) {
			t := k.t
			if got := k.say(group, "remember that the door code is 4071"); !strings.Contains(got, "only in a private chat") {
				t.Errorf("in a group: %q", got)
			}
			if _, err := os.Stat(filepath.Join(k.Dir, "workspace", "MEMORY.md")); err == nil {
				t.Error("a group wrote MEMORY.md")
			}
			k.say(ann, "remember that the door code is 4071")
			k.say(ann, "today the plumber came")
			if got := k.readIn("MEMORY.md"); got != "- the door code is 4071\n" {
				t.Errorf("MEMORY.md is %q", got)
			}
			k.say(ann, "/new")
			if k.say(ann, "hello"); !strings.Contains(lastSystem(k.model), "- the door code is 4071") {
				t.Error("MEMORY.md is not in the prompt of the next conversation")
			}
			if system := lastSystem(k.model); !strings.Contains(system, "Before you answer about earlier work") ||
				!strings.Contains(system, "one line in MEMORY.md") {
				t.Error("the prompt does not say when to search and what to write")
			}
			if got := k.say(ann, "who came?"); !strings.Contains(got, "memory/2000-01-01.md:1-1") ||
				!strings.Contains(got, ", changed 2") {
				t.Errorf("the search found %q", got)
			}
			if k.say(group, "hello"); strings.Contains(lastSystem(k.model), "4071") {
				t.Error("a group has MEMORY.md in its prompt")
			}
		})
	inChats(t, "E2E-11 the assistant changes its own rules, says so, and the next turn follows them", nil,
		func(r *llm.Request, said, result string) llmtest.Step {
			const edit = `{"path": "SOUL.md", "oldText": %s, "newText": %s}`
			switch {
			case strings.HasPrefix(result, "     1\t"):
				first, _, _ := strings.Cut(strings.TrimPrefix(result, "     1\t"), "\n")
				before, _ := json.Marshal(first + "\n")
				after, _ := json.Marshal(first + "\n\nAnswer in one short sentence.\n")
				return llmtest.Call("c2", "edit", fmt.Sprintf(edit, before, after))
			case result != "":
				return llmtest.Say("I wrote into SOUL.md: Answer in one short sentence.")
			case strings.Contains(said, "terse"):
				return llmtest.Call("c1", "read", `{"path": "SOUL.md"}`)
			case strings.Contains(systemOf(r), "Answer in one short sentence."):
				return llmtest.Say("Fine.")
			}
			return llmtest.Say("I am doing very well indeed, and I hope that so are you, on this fine day.")
		}, func(k *chatting) {
			t := k.t
			if got := k.say(ann, "how are you?"); got == "Fine." {
				t.Error("the rule is there before it is written")
			}
			if got := k.say(ann, "be more terse from now on"); !strings.Contains(got, "SOUL.md: Answer in one short sentence.") {
				t.Errorf("the person was told %q", got)
			}
			if got := k.readIn("SOUL.md"); !strings.Contains(got, "\n\nAnswer in one short sentence.\n") {
				t.Errorf("SOUL.md is %s", got)
			}
			if got := k.say(ann, "how are you?"); got != "Fine." {
				t.Errorf("the next answer is %q", got)
			}
			k.say(ann, "/new")
			if got := k.say(ann, "how are you?"); got != "Fine." {
				t.Errorf("in the next conversation the answer is %q", got)
			}
		})
	asked := func(r *llm.Request) bool {
		for _, m := range r.Messages {
			if strings.Contains(m.PlainText(), "The conversation will be summarized soon") {
				return true
			}
		}
		return false
	}
	inChats(t, "COMPACT-07 the model is asked for notes in a direct chat, and not in a group", windowed(40_000, `{}`),
		func(r *llm.Request, said, result string) llmtest.Step {
			switch {
			case isSummary(r):
				return llmtest.Say(goodSummary)
			case strings.Contains(said, "summarized soon") && result == "":
				return llmtest.Call("n", "write", `{"path": "memory/2000-01-01.md", "content": "noted\n"}`)
			case strings.Contains(said, "summarized soon"):
				return llmtest.Say("NO_REPLY")
			}
			return llmtest.Say("ok")
		}, func(k *chatting) {
			for _, p := range []chela.Peer{group, ann} {
				before := len(k.model.Requests())
				for i := range 12 {
					k.say(p, filler(i, 3000))
				}
				flushed, short := false, false
				for _, r := range k.model.Requests()[before:] {
					flushed, short = flushed || asked(r), short || isSummary(r)
				}
				_, err := os.Stat(filepath.Join(k.Dir, "workspace", "memory", "2000-01-01.md"))
				if !short || flushed != (p == ann) || (err == nil) != (p == ann) {
					k.t.Errorf("in a %s chat: compacted %t, asked for notes %t, written %t", p.Kind, short, flushed, err == nil)
				}
			}
		})
}

func groupOf(id string) chela.Peer { return chela.Peer{Kind: chela.Group, ID: id} }
