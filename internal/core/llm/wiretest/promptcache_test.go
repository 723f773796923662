package wiretest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestPromptCache(t *testing.T) {
	t.Parallel()
	const mark = `,"cache_control":{"type":"ephemeral"}`
	block := func(text, marker string) string { return `{"text":"` + text + `","type":"text"` + marker + `}` }
	system := strings.Repeat("rules ", 1000) // 1,500 tokens
	request := func(thinking string, blocks ...string) []byte {
		return fmt.Appendf(nil,
			`{"model":"m","thinking":{"type":%q},"system":[%s],"messages":[{"role":"user","content":[%s]}]}`,
			thinking, block(system, mark), strings.Join(blocks, ","))
	}
	many := func(n int) (list []string) {
		for i := range n {
			list = append(list, block(fmt.Sprint("block ", i, strings.Repeat("x", 400)), ""))
		}
		return list
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name          string
		first, second []byte
		after         time.Duration
		read          string // nothing, system, most
	}{
		{"the same request", request("a", block("hello", mark)), request("a", block("hello", mark)), time.Minute, "most"},
		{"it has expired", request("a", block("hello", mark)), request("a", block("hello", mark)),
			6 * time.Minute, "nothing"},
		{"the marker moved", request("a", append(many(10), block("1", mark))...),
			request("a", append(many(10), block("1", ""), block("2", mark))...), time.Minute, "most"},
		{"another message", request("a", block("hello", mark)), request("a", block("hi", mark)), time.Minute, "system"},
		{"other thinking", request("a", block("hello", mark)), request("b", block("hello", mark)), time.Minute, "system"},
		{"19 new blocks", request("a", append(many(30), block("1", mark))...),
			request("a", append(append(many(30), block("1", "")), append(many(18), block("2", mark))...)...),
			time.Minute, "most"},
		{"20 new blocks", request("a", append(many(30), block("1", mark))...),
			request("a", append(append(many(30), block("1", "")), append(many(19), block("2", mark))...)...),
			time.Minute, "system"},
		{"short prefixes are not stored", []byte(`{"messages":[{"role":"user","content":[` + block("hello", mark) + `]}]}`),
			[]byte(`{"messages":[{"role":"user","content":[` + block("hello", mark) + `]}]}`), 0, "nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c PromptCache
			one := c.Use(tt.first, start)
			if one.Read != 0 || one.Input+one.Write == 0 {
				t.Errorf("the first request: %+v", one)
			}
			two := c.Use(tt.second, start.Add(tt.after))
			got := "system"
			switch {
			case two.Read == 0:
				got = "nothing"
			case two.Read > 1600 || two.Input+two.Write == 0:
				got = "most"
			}
			if got != tt.read {
				t.Errorf("read %s, want %s: %+v", got, tt.read, two)
			}
		})
	}
}
