// Package canvas defines what the assistant shows on a screen beside the conversation: web
// pages that it wrote, and surfaces of A2UI, a format of JSON lines that describe controls.
//
// A session has one canvas. It is kept in memory and is empty after a restart. A page of the
// canvas is not the person: what it may do is in the documents of the package that serves it.
package canvas
