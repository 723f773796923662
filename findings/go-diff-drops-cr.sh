#!/bin/sh
# github.com/sourcegraph/go-diff v0.10.0 (needs Go): a diff of a file with CRLF that is parsed
# and printed again, unchanged, is a diff of a file with LF: the CR at the end of each line
# of a hunk is dropped while it is read. A patch that a program only splits or renames does
# not apply any more. github.com/bluekeyes/go-gitdiff v0.9.0 keeps it.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='given      " a\r\n-b\r\n+c\r\n"
go-diff    " a\n-b\n+c\n"
go-gitdiff " a\r\n-b\r\n+c\r\n"'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"github.com/sourcegraph/go-diff/diff"
)

func main() {
	given := "diff --git a/x b/x\nindex 1111111..2222222 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n"
	hunk := func(s string) string {
		_, after, _ := strings.Cut(s, "@@\n")
		return after
	}
	file, err := diff.ParseFileDiff([]byte(given))
	if err != nil {
		panic(err)
	}
	printed, err := diff.PrintFileDiff(file)
	if err != nil {
		panic(err)
	}
	files, _, err := gitdiff.Parse(strings.NewReader(given))
	if err != nil {
		panic(err)
	}
	fmt.Printf("given      %q\ngo-diff    %q\ngo-gitdiff %q\n", hunk(given), hunk(string(printed)), hunk(files[0].String()))
}
GO
go mod init example.com/diff >/dev/null 2>&1
go get github.com/sourcegraph/go-diff@v0.10.0 github.com/bluekeyes/go-gitdiff@v0.9.0 >/dev/null 2>&1
got=$(go run .)
printf '%s\n' "$got"
[ "$got" = "$want" ]
