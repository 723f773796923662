package discord

import "github.com/chela-ai/chela/internal/core/markup"

// render returns Markdown as Discord shows it.
func render(md string) string { return markup.Discord(md) }
