package policy

import "slices"

// alone are the tools that nobody calls from outside of a conversation, unless
// the configuration says so: those that run commands, take orders over other
// sessions, or change the gateway.
var alone = []string{
	"exec", "process", "spawn", "shell", "fs_write", "fs_delete", "fs_move", "apply_patch", "terminal", "portal",
	"sessions_spawn", "sessions_send", "conversations_list", "conversations_send", "conversations_turn",
	"cron", "gateway", "plugins", "nodes", "computer", "mobile_ui",
}

// Direct is the step for calls that come from outside of a conversation, by
// gateway.tools: deny adds to the built-in list, and allow takes from it, which
// is the owner's right alone.
func Direct(deny, allow []string, owner bool) Step {
	s := Step{Label: "direct", Key: "gateway.tools.deny", Deny: expand(deny)}
	allowed := expand(allow)
	for _, n := range alone {
		if n = Name(n); !slices.Contains(s.Deny, n) && (!owner || match(allowed, n) == "") {
			s.Deny = append(s.Deny, n)
		}
	}
	return s
}
