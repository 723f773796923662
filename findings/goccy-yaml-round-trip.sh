#!/bin/sh
# github.com/goccy/go-yaml v1.19.2 (needs Go): texts that Marshal writes and Unmarshal of the
# same library reads do not come back. ".inf" is written without quotes and is infinity, a
# line break alone vanishes, CRLF becomes LF, a tab between words is dropped, and a text that
# begins with "? " or, in several lines, with a tab is an error, so that the file in which
# it was saved cannot be opened again. go.yaml.in/yaml/v3 v3.0.6 keeps all but the last.
# Seen: see want below: the text, and what comes back.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='".inf" goccy +Inf, yaml/v3 ".inf"
"\n" goccy "", yaml/v3 "\n"
"a\r\nb" goccy "a\nb", yaml/v3 "a\r\nb"
"a\tb" goccy "ab", yaml/v3 "a\tb"
"? why" goccy error, yaml/v3 "? why"
"\tx = 1\n\ty = 2\n" goccy error, yaml/v3 error'
cat >main.go <<'GO'
package main

import (
	"fmt"

	"github.com/goccy/go-yaml"
	yaml3 "go.yaml.in/yaml/v3"
)

func show(v any, err error) string {
	if err != nil {
		return "error"
	}
	return fmt.Sprintf("%#v", v)
}

func main() {
	for _, text := range []string{".inf", "\n", "a\r\nb", "a\tb", "? why", "\tx = 1\n\ty = 2\n"} {
		var a, b map[string]any
		written, err := yaml.Marshal(map[string]string{"k": text})
		if err != nil {
			panic(err)
		}
		err = yaml.Unmarshal(written, &a)
		written3, err3 := yaml3.Marshal(map[string]string{"k": text})
		if err3 != nil {
			panic(err3)
		}
		err3 = yaml3.Unmarshal(written3, &b)
		fmt.Printf("%q goccy %s, yaml/v3 %s\n", text, show(a["k"], err), show(b["k"], err3))
	}
}
GO
go mod init example.com/trip >/dev/null 2>&1
go get github.com/goccy/go-yaml@v1.19.2 go.yaml.in/yaml/v3@v3.0.6 >/dev/null 2>&1
got=$(go run .)
printf '%s\n' "$got"
[ "$got" = "$want" ]
