package settings

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
)

// GroupChat is how the messages of groups are read.
type GroupChat struct {
	History  *int     `json:"historyLimit"`    // messages that the assistant sees as context; nil: 50
	Patterns []string `json:"mentionPatterns"` // regular expressions of texts that address the agent; nil: its name
}

// Mentions returns the patterns of texts that address an agent in a group: the agent's
// own, else those of all agents, else its name. nil: the configuration has none of them.
func (o *Settings) Mentions(id chela.AgentID) ([]*regexp.Regexp, error) {
	a, at := o.Agents.find(id)
	list, key := a.GroupChat.Patterns, at+".groupChat.mentionPatterns"
	if list == nil {
		list, key = o.Messages.GroupChat.Patterns, "messages.groupChat.mentionPatterns"
	}
	if name := strings.TrimSpace(a.Identity.Name); list == nil && name != "" {
		return []*regexp.Regexp{Named(name)}, nil
	}
	if list == nil {
		return nil, nil
	}
	out := make([]*regexp.Regexp, 0, len(list))
	for i, p := range list {
		r, err := regexp.Compile("(?i)" + p)
		if err != nil {
			return nil, fmt.Errorf("configuration, %s[%d]: %w", key, i, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// Named returns the pattern of texts that contain a name.
func Named(name string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:^|[^\p{L}\p{N}])@?` + regexp.QuoteMeta(name) + `(?:[^\p{L}\p{N}]|$)`)
}
