// Package markdown shows Markdown on a terminal: headings, emphasis, code with
// a gutter, lists, quotes, links and tables, no wider than asked for.
//
// [Render] shows a text. [Cut] serves text that still grows: what lies before
// the cut is complete, may be shown for good and is never parsed again.
//
// The text is foreign. It passes [ansi.Clean] first, so that the only escape
// sequences in the result are those of the styles.
package markdown
