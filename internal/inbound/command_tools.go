package inbound

import (
	"context"
	"strings"
)

// tools is /tools: those that the next run here would be given when its sender
// starts it, and no other.
func tools(ctx context.Context, k *call) (string, error) {
	verbose := strings.EqualFold(k.args, "verbose")
	if !verbose && k.args != "" && !strings.EqualFold(k.args, "compact") {
		return "/tools or /tools verbose", nil
	}
	specs, err := k.g.o.Tools(ctx, k.who, k.key)
	if err != nil {
		return "", err
	}
	if len(specs) == 0 {
		return "No tools can be used here.", nil
	}
	var b strings.Builder
	b.WriteString("Tools that can be used here:")
	for i, s := range specs {
		switch {
		case verbose:
			b.WriteString("\n- " + s.Name + ": " + sentence(s.Description))
		case i == 0:
			b.WriteString(" " + s.Name)
		default:
			b.WriteString(", " + s.Name)
		}
	}
	if !verbose {
		b.WriteString("\n\n/tools verbose says what they do.")
	}
	return b.String(), nil
}

// sentence returns the first sentence of a text.
func sentence(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if i := strings.Index(s, ". "); i >= 0 {
		s = s[:i+1]
	}
	return s
}
