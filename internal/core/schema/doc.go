// Package schema adapts the JSON Schema of a tool's arguments to model services.
// Each service supports another subset of JSON Schema 2020-12 and rejects a whole
// request because of one unsupported keyword.
//
// [Rules] convert a schema to the subset of one kind of service. Unsupported
// parts are replaced by equivalents where possible: a reference by its target, a
// union by one schema that accepts all of its alternatives, const by an enum of
// one value. The result may accept more than the tool does, so package invoke
// validates arguments against the tool's own schema. Names of arguments remain,
// even those of keywords, but for optional arguments that are marked as deprecated: the
// tool accepts them from models that know them from elsewhere, and others need not read
// about them. Where a service restricts names, others are replaced
// by names that [Fold] maps to the original.
//
// The functions are pure and total: depth, size and references are limited, and
// a schema that cannot be adapted is an error. The output is deterministic and
// keeps the author's order of names.
package schema
