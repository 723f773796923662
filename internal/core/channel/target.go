package channel

import (
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Target is the destination of a message as people write it:
// channel:kind:id:topic:thread. Everything except the id is optional.
type Target struct {
	Channel string
	Kind    chela.PeerKind
	ID      string
	Thread  string
}

// TopicPart separates the id of a chat from that of a thread in a [Target].
const TopicPart = ":topic:"

// ParseTarget parses a target. A word before a colon is the name of a channel unless it
// names a kind of chat.
func ParseTarget(s string) Target {
	var t Target
	s = strings.TrimSpace(s)
	if word, rest, ok := strings.Cut(s, ":"); ok && isName(word) && word != "agent" && chela.PeerKindOf(word) == "" {
		t.Channel, s = word, rest
	}
	peer, thread := chela.ParsePeer(s)
	t.Kind, t.ID, t.Thread = peer.Kind, peer.ID, thread
	return t
}

// isName reports whether a word may be the name of a channel or a kind. Platform ids that
// contain a colon begin with other characters.
func isName(s string) bool {
	for i, r := range s {
		if (r < 'a' || r > 'z') && (i == 0 || r != '-' && r != '_' && (r < '0' || r > '9')) {
			return false
		}
	}
	return s != ""
}
