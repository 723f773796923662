// Package json5 reads JSON5 and edits it in place.
//
// [Parse] gives a [Document]: the tree of the values with the byte span of
// each. [ToJSON] turns a source into plain JSON for encoding/json; there is
// no decoder of its own. [Document.Set] and [Document.Unset] return the source
// with as few bytes changed as the edit needs: comments, order, indentation,
// quoting and trailing commas of everything else stay as the person wrote
// them.
//
// All of JSON5 1.0 is read: comments, trailing commas, unquoted and
// single-quoted keys, hexadecimal numbers, leading and trailing points, plus
// signs, line continuations, the further escapes and blanks. Infinity and NaN
// are read too, but have no JSON form: [ToJSON] reports where they stand. Of a
// key that is given twice the last one counts, as in encoding/json. Bytes that
// are no UTF-8 are read as U+FFFD.
//
// Sources are bounded by [MaxSize] and [MaxDepth], so that no input can
// exhaust memory or stack.
package json5
