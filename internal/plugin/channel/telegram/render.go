package telegram

import "github.com/chela-ai/chela/internal/core/markup"

// render returns a text in Telegram's HTML.
func render(text string) string { return markup.Telegram(text) }
