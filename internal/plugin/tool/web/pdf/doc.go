// Package pdf extracts the text of a PDF.
//
// Files are untrusted, so everything is limited: inflated bytes, nesting of
// values, steps per page, length of the text. For the same reason the
// cross-reference table is ignored, and objects are found by searching the
// file. Content that cannot be read is omitted. Pages without text, such as
// scanned ones, yield no text.
package pdf
