// Package json5 parses JSON5 and edits it in place.
//
// [Parse] returns a [Document]: the tree of the values with the byte span of
// each. [ToJSON] converts a source to plain JSON for encoding/json; the package
// has no decoder of its own. [Document.Set] and [Document.Unset] return the
// source with as few bytes changed as the edit needs: comments, order,
// indentation, quoting and trailing commas of everything else remain.
//
// All of JSON5 1.0 is supported: comments, trailing commas, unquoted and
// single-quoted keys, hexadecimal numbers, leading and trailing decimal points,
// plus signs, line continuations, and the additional escapes and white space.
// Infinity and NaN are accepted too, but have no JSON form: [ToJSON] reports
// their position. If a key is repeated, the last one is used, as in
// encoding/json. Bytes that are not UTF-8 are read as U+FFFD.
//
// Sources are limited by [MaxSize] and [MaxDepth], so that no input can exhaust
// memory or stack.
package json5
