package settings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/engine/deliver"
)

// Delivery is the part of agents.defaults and agents.list[] that says how answers appear.
type Delivery struct {
	Typing        deliver.Typing `json:"typingMode"`
	TypingSeconds int            `json:"typingIntervalSeconds"`
	Pause         struct {
		Mode string `json:"mode"` // off, natural, custom; "": off
		Min  int    `json:"minMs"`
		Max  int    `json:"maxMs"`
	} `json:"humanDelay"`
}

// pauses returns the limits of the pause between the messages of an answer.
func (d Delivery) pauses() (least, most time.Duration) {
	switch d.Pause.Mode {
	case "natural":
		return 800 * time.Millisecond, 2500 * time.Millisecond
	case "custom":
		ms := func(n int) time.Duration { return time.Duration(min(max(n, 0), 60_000)) * time.Millisecond }
		return ms(d.Pause.Min), ms(d.Pause.Max)
	}
	return 0, 0
}

// Blocks is the part of agents.defaults about messages that are sent before an answer is
// complete.
type Blocks struct {
	Default string `json:"blockStreamingDefault"` // on, off; "": off
	Break   string `json:"blockStreamingBreak"`   // text_end, message_end; "": text_end
	Size    sizes  `json:"blockStreamingChunk"`
}

type sizes struct {
	Min int `json:"minChars"`
	Max int `json:"maxChars"`
}

// Acknowledgement is the part of messages about the reaction to a message.
type Acknowledgement struct {
	Reaction *string             `json:"ackReaction"` // an emoji; "": none; nil: that of the agent
	Scope    deliver.Acknowledge `json:"ackReactionScope"`
	Withdraw bool                `json:"removeAckAfterReply"`
}

// styleSection is the part of the section of an account that says how answers appear.
type styleSection struct {
	Streaming streaming     `json:"streaming"`
	Mode      streaming     `json:"streamMode"` // older form of streaming
	Blocks    *bool         `json:"blockStreaming"`
	Size      sizes         `json:"blockStreamingCoalesce"`
	Reply     deliver.Reply `json:"replyToMode"`
	Limit     int           `json:"textChunkLimit"`
	Reaction  *string       `json:"ackReaction"`
	Prefix    *string       `json:"responsePrefix"`
}

// styleKeys are the members of styleSection.
var styleKeys = []string{"streaming", "streamMode", "blockStreaming", "blockStreamingCoalesce", "replyToMode",
	"textChunkLimit", "ackReaction", "responsePrefix"}

// streaming is a mode, true or false, or an object with a mode.
type streaming deliver.Stream

// UnmarshalJSON accepts all forms.
func (s *streaming) UnmarshalJSON(b []byte) error {
	switch {
	case bytes.Equal(b, []byte("true")):
		*s = streaming(deliver.StreamPartial)
	case bytes.Equal(b, []byte("false")):
		*s = streaming(deliver.StreamOff)
	case bytes.HasPrefix(b, []byte("{")):
		var o struct {
			Mode *streaming `json:"mode"`
		}
		if err := json.Unmarshal(b, &o); err != nil || o.Mode == nil {
			return err
		}
		*s = *o.Mode
	default:
		return json.Unmarshal(b, (*deliver.Stream)(s))
	}
	return nil
}

var (
	streams = []deliver.Stream{"", deliver.StreamOff, deliver.StreamPartial, deliver.StreamBlock, deliver.StreamProgress}
	typings = []deliver.Typing{"", deliver.TypingNever, deliver.TypingInstant,
		deliver.TypingThinking, deliver.TypingMessage}
	replies = []deliver.Reply{"", deliver.ReplyOff, deliver.ReplyFirst, deliver.ReplyAll, "batched"}
	scopes  = []deliver.Acknowledge{
		"", "none", deliver.AcknowledgeOff, deliver.AcknowledgeDirect, deliver.AcknowledgeMentions, deliver.AcknowledgeGroups,
		deliver.AcknowledgeAll,
	}
)

// check returns an error if a value has an unknown form.
func (s *styleSection) check() error {
	switch {
	case !slices.Contains(streams, deliver.Stream(s.Streaming)):
		return oneOf("streaming", string(s.Streaming), streams)
	case !slices.Contains(streams, deliver.Stream(s.Mode)):
		return oneOf("streamMode", string(s.Mode), streams)
	case !slices.Contains(replies, s.Reply):
		return oneOf("replyToMode", string(s.Reply), replies)
	case s.Limit < 0:
		return fmt.Errorf("textChunkLimit is %d", s.Limit)
	}
	return nil
}

// oneOf returns the error about a value that is not in list.
func oneOf[T ~string](key, value string, list []T) error {
	var names []string
	for _, v := range list {
		if v != "" {
			names = append(names, string(v))
		}
	}
	return fmt.Errorf("%s is %q; want %s", key, value, strings.Join(names, ", "))
}

// checkDelivery returns the errors in the settings of all agents.
func (o *Settings) checkDelivery() error {
	var errs []error
	check := func(at string, d Delivery) {
		if !slices.Contains(typings, d.Typing) {
			errs = append(errs, fmt.Errorf("configuration, %s: %w", at, oneOf("typingMode", string(d.Typing), typings)))
		}
		if modes := []string{"", "off", "natural", "custom"}; !slices.Contains(modes, d.Pause.Mode) {
			errs = append(errs, fmt.Errorf("configuration, %s: %w", at, oneOf("humanDelay.mode", d.Pause.Mode, modes)))
		}
	}
	check("agents.defaults", o.Agent.Delivery)
	for _, id := range o.Roster() {
		a, at := o.Of(id)
		check(at, a.Delivery)
	}
	if !slices.Contains(scopes, o.Messages.Scope) {
		errs = append(errs, fmt.Errorf("configuration, messages: %w",
			oneOf("ackReactionScope", string(o.Messages.Scope), scopes)))
	}
	return errors.Join(errs...)
}

// Style returns how the answers of an agent appear in a chat. own is the identity in the
// agent's workspace, which counts where the configuration has none.
func (o *Settings) Style(id chela.AgentID, to chela.Address, own Identity) deliver.Style {
	agent, _ := o.Of(id)
	name := cmp.Or(agent.Identity.Name, own.Name)
	c := o.account(to).style
	s := deliver.Style{
		Stream:   cmp.Or(deliver.Stream(c.Streaming), deliver.Stream(c.Mode)),
		Reply:    c.Reply,
		Limit:    c.Limit,
		BlockMin: cmp.Or(c.Size.Min, o.Agent.Blocks.Size.Min),
		BlockMax: cmp.Or(c.Size.Max, o.Agent.Blocks.Size.Max),
		Whole:    o.Agent.Blocks.Break == "message_end",
		Typing:   cmp.Or(agent.Delivery.Typing, o.Agent.Delivery.Typing, o.Session.Typing),
		Refresh: time.Duration(min(max(cmp.Or(agent.Delivery.TypingSeconds, o.Agent.Delivery.TypingSeconds,
			o.Session.TypingSeconds), 0), 60)) * time.Second,

		Acknowledge: cmp.Or(o.Messages.Scope, deliver.AcknowledgeMentions),
		Withdraw:    o.Messages.Withdraw,
	}
	if o.Speech.Auto != speech.Off {
		s.Aloud, s.Said = o.Speech.Auto, o.Speech.Limit()
	}
	if s.Reply == "batched" {
		s.Reply = deliver.ReplyFirst
	}
	blocks := o.Agent.Blocks.Default == "on"
	if c.Blocks != nil {
		blocks = *c.Blocks
	}
	if s.Stream == "" && blocks {
		s.Stream = deliver.StreamBlock
	}
	d := agent.Delivery
	if d.Pause.Mode == "" {
		d = o.Agent.Delivery
	}
	s.PauseMin, s.PauseMax = d.pauses()
	switch {
	case c.Reaction != nil:
		s.Reaction = *c.Reaction
	case o.Messages.Reaction != nil:
		s.Reaction = *o.Messages.Reaction
	default:
		s.Reaction = cmp.Or(agent.Identity.Emoji, own.Emoji, deliver.UsualReaction)
	}
	prefix := o.Messages.Prefix
	if c.Prefix != nil {
		prefix = *c.Prefix
	}
	if prefix == "auto" {
		if prefix = ""; name != "" {
			prefix = "[{identity.name}]"
		}
	}
	if prefix = strings.ReplaceAll(prefix, "{identity.name}", cmp.Or(name, agent.Name, string(id))); prefix != "" {
		s.Prefix = prefix + " "
	}
	return s
}
