#!/bin/sh
# github.com/google/jsonschema-go v0.4.3 (needs Go): the schema that For makes of a Go type
# does not accept what encoding/json writes of it: []byte is an array of numbers in the
# schema and a text in JSON, json.RawMessage too, a map may not be null although a list may,
# and a type with MarshalText has the schema of what it is inside. The Go SDK of the Model
# Context Protocol v1.8.0 uses For and validates: a tool whose result has such a field fails
# at each call, or, for the map, only when there is nothing to report.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='bytes "aGk=": refused
raw {"a":1}: refused
list null: accepted
map null: refused
addr "127.0.0.1": refused
number 1: refused'
cat >main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/google/jsonschema-go/jsonschema"
)

// check says whether the schema of v's type accepts v.
func check[T any](name string, v T) {
	schema, err := jsonschema.For[T](nil)
	if err != nil {
		panic(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		panic(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		panic(err)
	}
	verdict := "accepted"
	if resolved.Validate(value) != nil {
		verdict = "refused"
	}
	fmt.Printf("%s %s: %s\n", name, text, verdict)
}

func main() {
	check("bytes", []byte("hi"))
	check("raw", json.RawMessage(`{"a":1}`))
	check("list", []string(nil))
	check("map", map[string]int(nil))
	check("addr", netip.MustParseAddr("127.0.0.1"))
	check("number", json.Number("1"))
}
GO
go mod init example.com/schema >/dev/null 2>&1
go get github.com/google/jsonschema-go@v0.4.3 >/dev/null 2>&1
got=$(go run .)
echo "$got"
[ "$got" = "$want" ]
