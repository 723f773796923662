// Package pdf reads the text of a PDF.
//
// The file may come from anybody, so everything is bounded: what is inflated,
// how deep values nest, how many steps a page takes, how long the text is. For
// the same reason the cross-reference table is not believed: objects are where
// they are found. What cannot be read is left out; a page without text, such as
// one that was scanned, has none.
package pdf
