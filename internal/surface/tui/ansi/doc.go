// Package ansi prepares text for terminals: [Clean] removes escape sequences
// from untrusted text, [Style] adds colors, [Wrap], [Truncate] and [Width]
// measure text in columns.
//
// Text from a model, a tool or another person must pass through Clean before it
// is styled, so that it contains only our own escape sequences.
package ansi
