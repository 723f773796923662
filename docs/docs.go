// Package docs contains the documentation of Chela for people, which its model can read,
// too.
package docs

import "embed"

// Pages are the pages, each a Markdown file.
//
//go:embed *.md
var Pages embed.FS
