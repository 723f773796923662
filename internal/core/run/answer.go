package run

import (
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Answers that a model gives instead of a text, and that are not delivered.
const (
	NoReply      = "NO_REPLY"      // of any run
	HeartbeatOK  = "HEARTBEAT_OK"  // of a heartbeat
	AnnounceSkip = "ANNOUNCE_SKIP" // of a run that reports the result of a child, or of an exchange between sessions
	ReplySkip    = "REPLY_SKIP"    // of a run that answers another session
)

// Answer determines which answers of a run are silent, which means that they are stored
// in the transcript but not delivered. The zero value recognizes only NoReply. Tokens are
// compared ignoring case and surrounding white space.
type Answer struct {
	Tokens []string // additional tokens of silent answers
	// MaxAck is the maximum number of other characters in a silent answer with a token.
	MaxAck int
}

// defaultMaxAck is MaxAck of heartbeats.
const defaultMaxAck = 300

// AnswerTo returns the Answer for runs with the given origin.
func AnswerTo(o chela.Origin) Answer {
	switch o.Kind {
	case chela.OriginHeartbeat:
		return Answer{Tokens: []string{HeartbeatOK}, MaxAck: defaultMaxAck}
	case chela.OriginSubagent:
		return Answer{Tokens: []string{AnnounceSkip}}
	case chela.OriginAgent:
		return Answer{Tokens: []string{AnnounceSkip, ReplySkip}}
	}
	return Answer{}
}

// Silent reports whether an answer is silent.
func (a Answer) Silent(text string) bool {
	text = strings.TrimSpace(text)
	if strings.EqualFold(text, NoReply) {
		return true
	}
	return slices.ContainsFunc(a.Tokens, func(token string) bool { return a.has(text, token) })
}

// Strip removes [HeartbeatOK] from the beginning and the end of a text for people. Models
// repeat it outside of heartbeats, too.
func Strip(text string) string {
	for {
		t := strings.TrimSpace(text)
		n := len(HeartbeatOK)
		switch {
		case len(t) >= n && strings.EqualFold(t[:n], HeartbeatOK) && !wordAt(t[n:]):
			text = strings.TrimLeft(t[n:], " \t\n.,:;!-")
		case len(t) >= n && strings.EqualFold(t[len(t)-n:], HeartbeatOK):
			text = strings.TrimRight(t[:len(t)-n], " \t\n")
		default:
			return text
		}
	}
}

// wordAt reports whether a text continues a word.
func wordAt(s string) bool {
	return s != "" && (s[0] == '_' || s[0] >= '0' && s[0] <= '9' || s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z')
}

// has reports whether a text begins or ends with a token, and contains little else.
func (a Answer) has(text, token string) bool {
	n := len(token)
	if len(text) < n {
		return false
	}
	rest := text[n:]
	if !strings.EqualFold(text[:n], token) {
		if rest = text[:len(text)-n]; !strings.EqualFold(text[len(rest):], token) {
			return false
		}
	}
	return len([]rune(strings.TrimSpace(rest))) <= a.MaxAck
}

// MayBeSilent reports whether an answer that begins with text can become silent.
func (a Answer) MayBeSilent(text string) bool {
	text = strings.ToUpper(strings.TrimSpace(text))
	if strings.HasPrefix(NoReply, text) {
		return true
	}
	return slices.ContainsFunc(a.Tokens, func(token string) bool {
		return strings.HasPrefix(token, text) || strings.HasPrefix(text, token) && a.has(text, token)
	})
}
