//go:build conformance

package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// script is the model. The first word of the message selects what it does:
//
//	echo TEXT    answers with the text
//	count        answers "1 2 3 … 40 ", in forty pieces over about a second
//	read FILE    reads the file with a tool and answers with its result
//	write FILE   writes the file with a tool and answers with its result
//	canvas ARGS  calls the tool canvas with the arguments, and answers with its result
//	run COMMAND  runs the command with a tool and answers with its result
//	wait         begins an answer and hangs
//	spawn TASK   starts the subagent "helper" with the task, and answers that it did
//	fail         fails with an error that is not retried
//
// All other messages are answered with greeting.
func script(_ int, r llmtest.ReceivedRequest) llmtest.Step {
	role, text := last(r.Body)
	switch {
	case role == "tool" && strings.Contains(text, `"childSessionKey"`):
		return llmtest.Say("A helper was started.")
	case role == "tool":
		return llmtest.Say("The tool said: " + strings.TrimSpace(text))
	case strings.Contains(text, `The subagent "helper" has finished`):
		return llmtest.Say("The helper has ended.")
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch word {
	case "echo":
		return llmtest.Say(rest)
	case "count":
		return count()
	case "read":
		return llmtest.Call(callID(r), "read", object("path", rest))
	case "write":
		return llmtest.Call(callID(r), "write", fmt.Sprintf(`{"path":%q,"content":"the tide turns at seven\n"}`, rest))
	case "canvas":
		return llmtest.Call(callID(r), "canvas", rest)
	case "run":
		return llmtest.Call(callID(r), "exec", object("command", rest))
	case "spawn":
		return llmtest.Call(callID(r), "sessions_spawn", fmt.Sprintf(`{"task":%q,"label":"helper"}`, rest))
	case "plan":
		return llmtest.Call(callID(r), "plan",
			`{"steps":[{"title":"water the plants","state":"in_progress"},{"title":"feed the fish"}]}`)
	case "wait":
		s := count()
		s.Fault.Hang = llmtest.HangMiddle
		return s
	case "fail":
		return llmtest.Status(400, "scripted refusal")
	}
	return llmtest.Say(greeting)
}

// greeting is the answer of the model to other messages.
const greeting = "Hello from the scripted model."

// counted is the answer to "count".
func counted() string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "%d ", i+1)
	}
	return b.String()
}

func count() llmtest.Step {
	s := llmtest.Say(counted())
	s.Chunk, s.Gap = len(counted())/40, 25*time.Millisecond
	return s
}

func object(key, value string) string {
	b, err := json.Marshal(map[string]string{key: value})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// callID returns an id that no other call of the conversation has.
func callID(r llmtest.ReceivedRequest) string { return fmt.Sprintf("call_%d", len(r.Body)) }

// last returns the role and the text of the last message of a request, before the note
// about the state of the session, if there is one.
func last(body []byte) (role, text string) {
	var r struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &r); err != nil || len(r.Messages) == 0 {
		return "", ""
	}
	m := r.Messages[len(r.Messages)-1]
	if n := len(r.Messages); n > 1 && strings.Contains(string(m.Content), "session-state") {
		m = r.Messages[n-2]
	}
	if json.Unmarshal(m.Content, &text) == nil {
		return m.Role, text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(m.Content, &parts) // no text: none
	for _, p := range parts {
		text += p.Text
	}
	return m.Role, text
}
