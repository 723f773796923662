#!/bin/sh
# github.com/sabhiram/go-gitignore v0.0.0-20210923224102-525f6e181f06 and
# github.com/monochromegane/go-gitignore v0.0.0-20200626010858-205db1a8cc00 (needs Go and
# git): two libraries that read .gitignore disagree with git about plain lines. For both,
# "[!a].txt" matches a.txt alone, the opposite, and "docs/api", which has a slash and so is a
# path from the top, is ignored in every folder. In the first one, signs of regular
# expressions keep their meaning: "c++" and "report (1).txt" do not match the files of these
# names. In the second one, "**/tmp" and "a/**/b" leave out the case without a folder between.
# A tool that lists the files of a project for a model shows other files than git knows.
# Seen: see want below: whether each ignores the path, t or f.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='git sabhiram monochromegane
t f t  line "c++", path "c++"
t f t  line "report (1).txt", path "report (1).txt"
f t t  line "[!a].txt", path "a.txt"
t f f  line "[!a].txt", path "b.txt"
f t t  line "docs/api", path "old/docs/api"
t t f  line "**/tmp", path "tmp"
t t f  line "a/**/b", path "a/b"'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	mono "github.com/monochromegane/go-gitignore"
	sab "github.com/sabhiram/go-gitignore"
)

func letter(b bool) string { return fmt.Sprint(b)[:1] }

func main() {
	fmt.Println("git sabhiram monochromegane")
	for _, c := range [][2]string{
		{"c++", "c++"}, {"report (1).txt", "report (1).txt"}, {"[!a].txt", "a.txt"}, {"[!a].txt", "b.txt"},
		{"docs/api", "old/docs/api"}, {"**/tmp", "tmp"}, {"a/**/b", "a/b"},
	} {
		if err := os.WriteFile(".gitignore", []byte(c[0]+"\n"), 0o600); err != nil {
			panic(err)
		}
		git := exec.Command("git", "check-ignore", "-q", "--no-index", c[1]).Run() == nil
		first := sab.CompileIgnoreLines(c[0]).MatchesPath(c[1])
		second := mono.NewGitIgnoreFromReader("/top", strings.NewReader(c[0])).Match("/top/"+c[1], false)
		fmt.Printf("%s %s %s  line %q, path %q\n", letter(git), letter(first), letter(second), c[0], c[1])
	}
}
GO
git init --quiet . 2>/dev/null
go mod init example.com/ignore >/dev/null 2>&1
go get github.com/sabhiram/go-gitignore@v0.0.0-20210923224102-525f6e181f06 github.com/monochromegane/go-gitignore@v0.0.0-20200626010858-205db1a8cc00 >/dev/null 2>&1
got=$(go run .)
echo "$got"
[ "$got" = "$want" ]
