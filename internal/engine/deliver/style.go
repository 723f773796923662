package deliver

import (
	"cmp"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/speech"
)

// Stream is what a chat shows of an answer before it is complete.
type Stream string

// The values of [Stream].
const (
	StreamOff      Stream = "off"      // nothing
	StreamPartial  Stream = "partial"  // a message that is edited while the answer grows
	StreamBlock    Stream = "block"    // its paragraphs, as messages of their own
	StreamProgress Stream = "progress" // a message with what the tools do, which becomes the answer
)

// Typing is when the typing indicator is shown.
type Typing string

// The values of [Typing].
const (
	TypingNever    Typing = "never"
	TypingInstant  Typing = "instant"  // from the start of the run
	TypingThinking Typing = "thinking" // from the first thought of the model
	TypingMessage  Typing = "message"  // from the first word of the answer
)

// Reply is which messages of an answer are shown as replies to the message that they
// answer.
type Reply string

// The values of [Reply].
const (
	ReplyOff   Reply = "off"
	ReplyFirst Reply = "first"
	ReplyAll   Reply = "all"
)

// Acknowledge is which messages get a reaction when they begin to be answered.
type Acknowledge string

// The values of [Acknowledge].
const (
	AcknowledgeOff      Acknowledge = "off"
	AcknowledgeDirect   Acknowledge = "direct"         // those of one person
	AcknowledgeMentions Acknowledge = "group-mentions" // those of groups that mention the agent
	AcknowledgeGroups   Acknowledge = "group-all"      // all of groups that are answered
	AcknowledgeAll      Acknowledge = "all"
)

// covers reports whether a message gets a reaction.
func (a Acknowledge) covers(in chela.Inbound) bool {
	private := in.Address.Private()
	switch a {
	case AcknowledgeAll:
		return true
	case AcknowledgeDirect:
		return private
	case AcknowledgeMentions:
		return !private && in.Mentioned
	case AcknowledgeGroups:
		return !private
	}
	return false
}

// UsualReaction is the emoji with which a message is acknowledged unless another is set.
const UsualReaction = "👀"

// Style is how the answers of an agent appear in a chat. An empty field means the default
// of the chat, see Options.Style.
type Style struct {
	Stream Stream // default: StreamPartial in direct chats, StreamOff in groups

	// BlockMin and BlockMax are the lengths of the messages of StreamBlock, in the unit of
	// the channel. With Whole, a message of the model is sent when it is complete.
	BlockMin, BlockMax int
	Whole              bool

	PauseMin, PauseMax time.Duration // between the messages of an answer; 0: none

	Typing  Typing        // default: TypingInstant in direct chats and for mentions, TypingMessage in groups
	Refresh time.Duration // of the typing indicator; default: 6 s

	Reply  Reply  // default: ReplyOff
	Prefix string // before an answer; may contain {model}, {modelFull} and {provider}
	Limit  int    // length of a message, if it is less than the limit of the channel

	Aloud speech.Mode // which answers are also said aloud; default: none
	Said  int         // maximum characters of what is said

	Reaction    string // emoji of Acknowledge
	Acknowledge Acknowledge
	Withdraw    bool // the reaction is removed after the answer
}

// style returns the style for an agent and a chat.
func (w *Worker) style(agent chela.AgentID, a chela.Address) Style {
	var s Style
	if w.o.Style != nil {
		s = w.o.Style(agent, a)
	}
	if s.Stream == "" {
		if s.Stream = StreamOff; a.Private() {
			s.Stream = StreamPartial
		}
	}
	s.Refresh = cmp.Or(s.Refresh, typingInterval)
	s.BlockMin, s.BlockMax = cmp.Or(s.BlockMin, 800), cmp.Or(s.BlockMax, 1200)
	s.BlockMax = max(s.BlockMax, s.BlockMin)
	s.PauseMax = max(s.PauseMax, s.PauseMin)
	return s
}

// prefix returns the text before an answer of a model, provider/model.
func (s Style) prefix(model string) string {
	if !s.namesModel() {
		return s.Prefix
	}
	provider, name, _ := strings.Cut(model, "/")
	return strings.NewReplacer("{model}", name, "{modelFull}", model, "{provider}", provider).Replace(s.Prefix)
}

// namesModel reports whether the prefix is not known before an answer is complete.
func (s Style) namesModel() bool {
	return strings.Contains(s.Prefix, "{model") || strings.Contains(s.Prefix, "{provider}")
}

// typing returns when the typing indicator is shown during a run that answers a message.
func (s Style) typing(a chela.Address, mentioned bool) Typing {
	if s.Typing != "" {
		return s.Typing
	}
	if a.Private() || mentioned {
		return TypingInstant
	}
	return TypingMessage
}
