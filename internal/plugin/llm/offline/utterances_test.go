package offline

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
)

// understood is the minimum number of understood utterances.
const understood = 108

// tools identify an intent by its tool. Conversation is identified by the reply.
var (
	byTool = map[string][]string{
		"read":     {"read"},
		"list":     {"ls"},
		"search":   {"grep"},
		"find":     {"find"},
		"run":      {"exec"},
		"write":    {"write"},
		"append":   {"edit", "write", "exec"},
		"edit":     {"edit"},
		"remember": {"edit", "write"},
		"recall":   {"read", "grep"},
		"fetch":    {"web_fetch"},
		"remind":   {"cron"},
		"spawn":    {"sessions_spawn"},
		"status":   {"session_status"},
		"time":     {"session_status"},
	}
	byReply = map[string]localized{
		"time":   {"It is ", "现在是"},
		"status": {"Model: ", "Model: "},
		"help":   helpText,
		"greet":  greetText,
		"thanks": thanksText,
		"none":   unknownText,
	}
)

// TestUtterances uses requests of people who did not know the table.
func TestUtterances(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/utterances.tsv")
	if err != nil {
		t.Fatal(err)
	}
	all, good := 0, 0
	for line := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(f) != 4 {
			continue
		}
		all++
		k := newTalk(t)
		k.tools = allTools
		k.files[memoryFile] = "- " + f[2] + ": this one\n- Quito lies high\n"
		reply := k.say(f[3])
		switch {
		case fits(k, f[1], f[2], reply):
			good++
		case len(k.log) > 0:
			t.Logf("miss %s: %q calls %q", f[1], f[3], k.log)
		default:
			t.Logf("miss %s: %q reply %.120q", f[1], f[3], reply)
			if !strings.Contains(reply, "help") && !strings.Contains(reply, "帮助") &&
				!strings.HasSuffix(strings.TrimRight(reply, ". 。"), "？") {
				t.Errorf("%q: the reply has no suggestions:\n%s", f[3], reply)
			}
		}
	}
	t.Logf("%d of %d understood", good, all)
	if all != 120 || good < understood {
		t.Errorf("%d of %d understood, want at least %d of 120", good, all, understood)
	}
}

// fits reports whether a request was understood as the intent, with the slot in
// the arguments of a call or in the recalled notes.
func fits(k *talk, intent, slot, reply string) bool {
	if w, ok := byReply[intent]; ok {
		head := func(s string) string { line, _, _ := strings.Cut(s, "\n"); return line }
		if !strings.Contains(reply, head(w.en)) && !strings.Contains(reply, head(w.zh)) ||
			len(byTool[intent]) == 0 && len(k.log) > 0 {
			return false
		}
	}
	if intent == "recall" &&
		(!strings.Contains(reply, slot+": this one") || slot != "" && strings.Contains(reply, "Quito")) {
		return false
	}
	tools := byTool[intent]
	for _, m := range k.messages {
		for _, c := range m.Calls() {
			for _, tool := range tools {
				if c.Name == tool && (intent == "recall" || holds(c, slot)) {
					return true
				}
			}
		}
	}
	return len(tools) == 0
}

// holds reports whether an argument of a call contains the slot.
func holds(c llm.ToolCall, slot string) bool {
	var args map[string]any
	if json.Unmarshal(c.Args, &args) != nil {
		return false
	}
	for _, v := range args {
		if s, ok := v.(string); ok && strings.Contains(s, slot) {
			return true
		}
		if m, ok := v.(map[string]any); ok {
			b, _ := json.Marshal(m)
			if strings.Contains(string(b), slot) {
				return true
			}
		}
	}
	return slot == ""
}
