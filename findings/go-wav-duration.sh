#!/bin/sh
# github.com/go-audio/wav v1.1.0 (needs Go): the duration of a recording is that of the file.
# All that stands in it is counted as sound, the header and every chunk of notes, pictures or
# padding (JUNK), so that one second with 96 kB of padding lasts four. The samples that it
# reads are the right number. A limit on the length of voice messages refuses short ones.
# Seen: see want below: the bytes beside the sound, the duration, and that of the samples.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='0: 1.001125s, samples 1 s
32000: 2.001375s, samples 1 s
96000: 4.001375s, samples 1 s'
cat >main.go <<'GO'
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/go-audio/wav"
)

func chunk(id string, data []byte) []byte {
	return append(binary.LittleEndian.AppendUint32([]byte(id), uint32(len(data))), data...)
}

func main() {
	const rate = 16000 // samples of two bytes, one channel
	var format bytes.Buffer
	for _, v := range []any{uint16(1), uint16(1), uint32(rate), uint32(2 * rate), uint16(2), uint16(16)} {
		if err := binary.Write(&format, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	sound := chunk("data", make([]byte, 2*rate))
	for _, extra := range []int{0, 32000, 96000} {
		body := append([]byte("WAVE"), chunk("fmt ", format.Bytes())...)
		if extra > 0 {
			body = append(body, chunk("JUNK", make([]byte, extra))...)
		}
		file := chunk("RIFF", append(body, sound...))
		duration, err := wav.NewDecoder(bytes.NewReader(file)).Duration()
		if err != nil {
			panic(err)
		}
		samples, err := wav.NewDecoder(bytes.NewReader(file)).FullPCMBuffer()
		if err != nil {
			panic(err)
		}
		fmt.Printf("%d: %v, samples %d s\n", extra, duration, len(samples.Data)/rate)
	}
}
GO
go mod init example.com/wav >/dev/null 2>&1
go get github.com/go-audio/wav@v1.1.0 >/dev/null 2>&1
got=$(go run .)
echo "$got"
[ "$got" = "$want" ]
