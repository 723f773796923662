package pathpolicy

import (
	"context"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Self reports whether a file in a workspace, which is named relative to it, says who the
// assistant is, what it knows about its person, or what it does: its persona and rules,
// its skills and its hooks. [MayChangeSelf] says who may have them changed.
func Self(name string) bool {
	name = strings.ToLower(strings.Map(Visible, path.Clean(filepath.ToSlash(name))))
	top, _, _ := strings.Cut(name, "/")
	switch top {
	case "soul.md", "agents.md", "identity.md", "user.md", "tools.md", "heartbeat.md", "memory.md", "bootstrap.md",
		"boot.md", "skills", ".agents", "hooks":
		return true
	}
	return false
}

// Visible is a mapping that drops characters which some file systems ignore in names.
func Visible(r rune) rune {
	if unicode.Is(unicode.Cf, r) {
		return -1
	}
	return r
}

// MayChangeSelf reports whether a call may change the files for which [Self] is true: one
// of the owner, or of a person who may write to the assistant and whose chat with it nobody
// else reads. private says that the call belongs to such a chat.
func MayChangeSelf(ctx context.Context, private bool) bool {
	who := chela.PrincipalFrom(ctx)
	return who.May(chela.ScopeOwnerTools) ||
		private && who.May(chela.ScopeWrite) && who.Credential != chela.WebhookCredential
}
