package run

import (
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Answers that a model gives instead of a text, and that are not delivered.
const (
	NoReply      = "NO_REPLY"      // of any run
	HeartbeatOK  = "HEARTBEAT_OK"  // of a heartbeat
	AnnounceSkip = "ANNOUNCE_SKIP" // of a run that reports the result of a child
)

// Answer determines which answers of a run are silent, which means that they are stored
// in the transcript but not delivered. The zero value recognizes only NoReply. Tokens are
// compared ignoring case and surrounding white space.
type Answer struct {
	Token string // an additional token of silent answers; empty: none
	// MaxAck is the maximum number of other characters in a silent answer with Token.
	MaxAck int
}

// defaultMaxAck is MaxAck of heartbeats.
const defaultMaxAck = 300

// AnswerTo returns the Answer for runs with the given origin.
func AnswerTo(o chela.Origin) Answer {
	switch o.Kind {
	case chela.OriginHeartbeat:
		return Answer{Token: HeartbeatOK, MaxAck: defaultMaxAck}
	case chela.OriginSubagent:
		return Answer{Token: AnnounceSkip}
	}
	return Answer{}
}

// Silent reports whether an answer is silent.
func (a Answer) Silent(text string) bool {
	text = strings.TrimSpace(text)
	if strings.EqualFold(text, NoReply) {
		return true
	}
	n := len(a.Token)
	if n == 0 || len(text) < n {
		return false
	}
	rest := text[n:]
	if !strings.EqualFold(text[:n], a.Token) {
		if rest = text[:len(text)-n]; !strings.EqualFold(text[len(rest):], a.Token) {
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
	return a.Token != "" && (strings.HasPrefix(a.Token, text) || strings.HasPrefix(text, a.Token) && a.Silent(text))
}
