// Package schema is the JSON Schema of a tool's arguments, as the services of
// models take it. Each of them takes another part of JSON Schema 2020-12 and
// refuses a whole request for one keyword too many.
//
// [Rules] turn a schema into what one kind of service takes. What is not taken
// is not just cut off, but replaced by what says the same as far as that can be
// said: a reference by what it refers to, a union by one schema that takes what
// its alternatives take, const by an enum of one. That may allow more than the
// tool does: the door holds the arguments against the tool's own schema. Names
// of arguments stay, also when they are those of keywords; where a service takes
// plain names only, others are replaced by such that the door knows by [Fold].
//
// The functions are pure and total: bounded in depth, size and references, with
// an error for a schema that cannot be made acceptable. What is the same in is the
// same out, with names in the order in which the author wrote them.
package schema
