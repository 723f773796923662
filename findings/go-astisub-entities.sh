#!/bin/sh
# github.com/asticode/go-astisub v0.34.0 (needs Go): of the entities that WebVTT requires in a
# text, &amp; and &lt; are decoded and &gt; is not, so that what was said is shown as "3 &gt; 2",
# and written again as "3 &amp;gt; 2". SRT has no entities: its players show the characters as
# they are. There, reading and writing without any change makes "AT&T" to "AT&amp;T".
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='vtt: 3 &gt; 2 & 1 < 2 -> 3 &amp;gt; 2 &amp; 1 &lt; 2
srt: AT&T says 1 < 2 -> AT&amp;T says 1 &lt; 2'
cat >main.go <<'GO'
package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/asticode/go-astisub"
)

func main() {
	show := func(name string, s *astisub.Subtitles, err error, write func() string) {
		if err != nil {
			panic(err)
		}
		lines := strings.Split(strings.TrimSpace(write()), "\n")
		fmt.Printf("%s: %s -> %s\n", name, s.Items[0], lines[len(lines)-1])
	}
	var b bytes.Buffer
	vtt, err := astisub.ReadFromWebVTT(strings.NewReader("WEBVTT\n\n00:01.000 --> 00:02.500\n3 &gt; 2 &amp; 1 &lt; 2\n"))
	show("vtt", vtt, err, func() string { _ = vtt.WriteToWebVTT(&b); return b.String() })
	b.Reset()
	srt, err := astisub.ReadFromSRT(strings.NewReader("1\n00:00:01,000 --> 00:00:02,500\nAT&T says 1 < 2\n"))
	show("srt", srt, err, func() string { _ = srt.WriteToSRT(&b); return b.String() })
}
GO
go mod init example.com/subtitles >/dev/null 2>&1
go get github.com/asticode/go-astisub@v0.34.0 >/dev/null 2>&1
got=$(go run .)
echo "$got"
[ "$got" = "$want" ]
