package policy

import "slices"

// directDeny are the tools that cannot be called from outside a conversation by
// default: they run commands, control other sessions or change the gateway.
var directDeny = []string{
	"exec", "process", "spawn", "shell", "fs_write", "fs_delete", "fs_move", "apply_patch", "terminal", "portal",
	"sessions_spawn", "sessions_send", "conversations_list", "conversations_send", "conversations_turn",
	"cron", "gateway", "plugins", "nodes", "computer", "mobile_ui",
}

// Direct returns the step for calls from outside a conversation, configured by
// gateway.tools: deny adds to the built-in list; allow removes from it, for the
// owner only.
func Direct(deny, allow []string, owner bool) Step {
	s := Step{Label: "direct", Key: "gateway.tools.deny", Deny: expand(deny)}
	allowed := expand(allow)
	for _, n := range directDeny {
		if n = Name(n); !slices.Contains(s.Deny, n) && (!owner || match(allowed, n) == "") {
			s.Deny = append(s.Deny, n)
		}
	}
	return s
}
