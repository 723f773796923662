package inbound

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/core/store"
)

func speechCommands() []Command {
	return []Command{{
		Name: "tts", Group: "session", Args: "[status | on | off | inbound | tagged | provider <id> | audio <text>]",
		Scope:  chela.ScopeAdmin,
		Help:   "say answers aloud: on is all answers, inbound those to voice notes; audio says a text once",
		before: changeSpeech, run: (*call).sayText,
	}}
}

// changeSpeech is /tts, apart from what is sent. A change is not part of the command's
// commit, because it is written to the configuration file.
func changeSpeech(ctx context.Context, k *call) (string, error) {
	v := k.g.o.Voice
	if v == nil {
		return "", refuse{"Nothing is said aloud here."}
	}
	verb, rest := cut(k.args)
	switch verb = strings.ToLower(verb); {
	case verb == "" || verb == "status":
		return speechStatus(v), nil
	case verb == "audio" && strings.TrimSpace(rest) != "":
		return "", nil // see sayText
	case verb == "provider" && strings.TrimSpace(rest) != "":
		id := strings.TrimSpace(rest)
		if err := v.SetProvider(ctx, id); err != nil {
			return "", err
		}
		return id + " speaks.", nil
	case rest != "":
	case verb == "on":
		return modeSet(ctx, v, speech.Always)
	case slices.Contains(speech.Modes[:], speech.Mode(verb)):
		return modeSet(ctx, v, speech.Mode(verb))
	}
	return "", refuse{"Usage: /tts status, on, off, inbound, tagged, provider <id> or audio <text>"}
}

func modeSet(ctx context.Context, v speech.Voice, m speech.Mode) (string, error) {
	if m != speech.Off && speech.Active(v) == "" {
		return "", refuse{"No voice is configured. `chela tts status` says how."}
	}
	if err := v.SetMode(ctx, m); err != nil {
		return "", err
	}
	return map[speech.Mode]string{
		speech.Off: "Answers are not said aloud.", speech.Always: "Answers are also said aloud.",
		speech.Inbound: "Answers to voice notes are also said aloud.",
		speech.Tagged:  "Answers are said aloud when the model marks them.",
	}[m], nil
}

func speechStatus(v speech.Voice) string {
	active := speech.Active(v)
	if active == "" {
		return "No voice is configured. `chela tts status` says how."
	}
	return fmt.Sprintf("Voice: %s, said aloud: %s", active, v.Mode())
}

// sayText sends the recording of a text.
func (k *call) sayText() (string, error) {
	verb, text := cut(k.args)
	if strings.ToLower(verb) != "audio" {
		return "", nil
	}
	if k.in.Address.Local() {
		return "Recordings are sent to chat apps. Here: chela tts say TEXT --output FILE", nil
	}
	words := speech.Words(text, k.g.o.Voice.Limit())
	if words == "" {
		return "There is nothing to say in that.", nil
	}
	k.tx.Wake(store.Topic{Kind: store.TopicOutbox})
	id := "tts:" + dedupeKey(k.who, k.home, k.in)
	return "", k.tx.Outbox().Put(outbox.Row{
		Key:     id + ":0",
		Run:     chela.RunID(id),
		Session: k.key,
		Address: k.in.Address,
		ReplyTo: k.in.ID,
		Created: k.now,
		State:   outbox.Pending,
		Media:   []chela.Media{{Say: words}},
	})
}
