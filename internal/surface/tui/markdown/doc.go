// Package markdown renders Markdown for terminals of a given width: headings,
// emphasis, code, lists, quotes, links and tables.
//
// [Render] renders a text. [Cut] splits a text that still grows: the part before
// the cut is complete and can be printed, it does not have to be parsed again.
//
// The text is untrusted. It passes through [ansi.Clean] first, so that the
// result contains no escape sequences except those of the styles.
package markdown
