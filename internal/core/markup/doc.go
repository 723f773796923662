// Package markup renders Markdown for messaging platforms.
//
// The source is CommonMark with strikethrough, tables, task lists and bare links. It comes
// from a model, so it is not trusted: raw HTML, and whatever a platform would take for
// markup of its own, is shown as text. A line break within a paragraph stays a line break,
// because people expect it in chats. Character references such as &amp; are not resolved
// in text.
//
// One walk over the syntax tree calls a writer. There are two: one for lines of text,
// which a dialect configures for a platform, and one for HTML.
package markup
