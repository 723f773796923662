package inbound

import (
	"context"
	"strings"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// maxSummary is the maximum length of a description in /tools verbose.
const maxSummary = 200

// tools is /tools: the tools of a run that the sender would start here.
func tools(ctx context.Context, k *call) (string, error) {
	verbose := strings.EqualFold(k.args, "verbose")
	if !verbose && k.args != "" && !strings.EqualFold(k.args, "compact") {
		return "", refuse{"Usage: /tools [verbose]"}
	}
	specs, err := k.g.o.Tools(ctx, k.who, k.key)
	if err != nil {
		return "", err
	}
	if len(specs) == 0 {
		return "No tools are available here.", nil
	}
	var b strings.Builder
	b.WriteString("Tools available here:")
	for i, s := range specs {
		switch {
		case verbose:
			b.WriteString("\n- " + s.Name + ": " + humanize.Sentence(s.Description, maxSummary))
		case i == 0:
			b.WriteString(" " + s.Name)
		default:
			b.WriteString(", " + s.Name)
		}
	}
	if !verbose {
		b.WriteString("\n\nUse /tools verbose to show their descriptions.")
	}
	return b.String(), nil
}
