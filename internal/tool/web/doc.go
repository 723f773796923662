// Package web is the tools web_fetch and web_search.
//
// Both reach the web through the HTTP client that they are given, which is
// where addresses are checked, and keep what they got for a while. What comes
// from outside is told apart from the person's words: it stands in one mark
// that names its origin, and what looks like such a mark in it is taken out.
//
// web_fetch makes text of what it gets: the main part of a page as Markdown,
// or plain; JSON with line breaks; the text of a PDF. An image stays one.
// Scripts are never run.
package web
