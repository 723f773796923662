package settings

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/engine/deliver"
)

func TestStyle(t *testing.T) {
	t.Parallel()
	at := func(account string) chela.Address {
		return chela.Address{Channel: "fake", Account: chela.AccountID(account),
			Peer: chela.Peer{Kind: chela.Direct, ID: "1"}}
	}
	usual := deliver.Style{Reaction: "👀", Acknowledge: deliver.AcknowledgeMentions}
	with := func(f func(*deliver.Style)) deliver.Style {
		s := usual
		f(&s)
		return s
	}
	for name, c := range map[string]struct {
		config  conf
		account string
		want    deliver.Style
	}{
		"nothing is configured": {nil, "a", usual},
		"the account over the channel over all channels": {
			conf{"channels": `{"defaults": {"streaming": "block", "replyToMode": "all", "textChunkLimit": 500},
				"fake": {"streaming": "progress", "replyToMode": "first", "accounts": {"a": {"streaming": {"mode": "off"}}}}}`},
			"a",
			with(func(s *deliver.Style) { s.Stream, s.Reply, s.Limit = deliver.StreamOff, deliver.ReplyFirst, 500 }),
		},
		"another account": {
			conf{"channels": `{"fake": {"streaming": true, "replyToMode": "batched", "accounts": {"a": {"streaming": false}, "b": {}}}}`}, "b",
			with(func(s *deliver.Style) { s.Stream, s.Reply = deliver.StreamPartial, deliver.ReplyFirst }),
		},
		"paragraphs": {
			conf{
				"agents.defaults": `{"blockStreamingDefault": "on", "blockStreamingBreak": "message_end", "blockStreamingChunk": {"minChars": 5, "maxChars": 9}}`,
				"channels":        `{"fake": {"blockStreamingCoalesce": {"minChars": 7}}}`,
			}, "a",
			with(func(s *deliver.Style) { s.Stream, s.BlockMin, s.BlockMax, s.Whole = deliver.StreamBlock, 7, 9, true }),
		},
		"paragraphs on a channel": {
			conf{"channels": `{"fake": {"blockStreaming": true}}`}, "a",
			with(func(s *deliver.Style) { s.Stream = deliver.StreamBlock }),
		},
		"pauses and typing of the agent": {
			conf{
				"agents.defaults": `{"typingMode": "never", "typingIntervalSeconds": 9, "humanDelay": {"mode": "natural"}}`,
				"agents":          `{"list": [{"id": "main", "typingMode": "message", "humanDelay": {"mode": "custom", "minMs": 10, "maxMs": 20}}]}`,
			}, "a",
			with(func(s *deliver.Style) {
				s.Typing, s.Refresh, s.PauseMin, s.PauseMax = deliver.TypingMessage, 9*time.Second,
					10*time.Millisecond, 20*time.Millisecond
			}),
		},
		"reactions and prefix": {
			conf{
				"agents":   `{"list": [{"id": "main", "identity": {"name": "Ann", "emoji": "🦀"}}]}`,
				"messages": `{"responsePrefix": "auto", "ackReactionScope": "all", "removeAckAfterReply": true}`,
			}, "a",
			with(func(s *deliver.Style) {
				s.Reaction, s.Acknowledge, s.Withdraw, s.Prefix = "🦀", deliver.AcknowledgeAll, true, "[Ann] "
			}),
		},
		"no reaction on the channel": {
			conf{"messages": `{"ackReaction": "✅"}`, "channels": `{"fake": {"ackReaction": "", "responsePrefix": "{model}:"}}`},
			"a",
			with(func(s *deliver.Style) { s.Reaction, s.Prefix = "", "{model}: " }),
		},
	} {
		o, err := Read(c.config)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, o.Style("main", at(c.account), Identity{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for want, config := range map[string]conf{
		`streaming is "blocks"; want off, partial, block, progress`: {"channels": `{"fake": {"streaming": "blocks"}}`},
		`replyToMode is "always"`: {
			"channels": `{"fake": {"accounts": {"a": {"replyToMode": "always"}}}}`},
		`agents.defaults: typingMode is "later"`: {"agents.defaults": `{"typingMode": "later"}`},
		`humanDelay.mode is "slow"; want off, natural, custom`: {
			"agents": `{"list": [{"id": "x", "humanDelay": {"mode": "slow"}}]}`},
		`ackReactionScope is "some"`: {"messages": `{"ackReactionScope": "some"}`},
	} {
		if _, err := Read(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %s", config, err, want)
		}
	}
}
