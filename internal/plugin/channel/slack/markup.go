package slack

import "github.com/chela-ai/chela/internal/core/markup"

// mrkdwn returns Markdown as Slack's markup.
func mrkdwn(md string) string { return markup.Slack(md) }
