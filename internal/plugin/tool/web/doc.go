// Package web implements the tools web_fetch and web_search.
//
// Both use the HTTP client that they are given, which checks addresses, and
// cache their results for a while. Text from the web is wrapped in a label
// that names its origin and marks it as untrusted. Anything in the text that
// resembles such a label is removed.
//
// web_fetch converts what it gets to text: the main part of a page as
// Markdown or plain text, indented JSON, the text of a PDF. Images are
// returned as images. Scripts are never run.
package web
