package openclaw

import (
	"bytes"
	"testing"
)

func FuzzSplit(f *testing.F) {
	f.Add([]byte(
		"{\"type\":\"session\"}\n{\"type\":\"message\"}\n{\"type\":\"reset\",\"reason\":\"new\"}\n{\"type\":\"message\"}\n"))
	f.Add([]byte("{\"type\":\"reset\"}\n{\"type\":\"reset\"}"))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		header, _, _ := bytes.Cut(text, []byte("\n"))
		size := 0
		for i, p := range split(text, "x") {
			if !bytes.HasPrefix(p.JSONL, bytes.TrimSpace(header)) {
				t.Errorf("part %d has another header", i)
			}
			size += len(p.JSONL) - len(bytes.TrimSpace(header)) - 1
		}
		if size > len(text) {
			t.Errorf("%d bytes of %d", size, len(text))
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{a: 1, /* b */ c: [0x1, 'x',]}`))
	f.Add([]byte("\xef\xbb\xbf{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var v any
		if decode(text, &v) == nil {
			_, _ = (&Home{}).resolve(v, ConfigFile, maxIncludes+1)
		}
		_, _ = thawed(text)
		_ = lockOf(text, "/x")
	})
}

func FuzzNames(f *testing.F) {
	f.Add("telegram-work")
	f.Add("11111111-aaaa-4aaa-8aaa-000000000001.jsonl.reset.2026-03-01T08-00-00.000Z.zst")
	f.Fuzz(func(t *testing.T, name string) {
		channel, account := splitAccount(name, []string{"telegram", "nextcloud-talk"})
		if len(channel)+len(account) > len(name) {
			t.Errorf("%q, %q", channel, account)
		}
		if m := transcriptName().FindStringSubmatch(name); m != nil && bytes.ContainsAny([]byte(m[1]), "/\\.") {
			t.Errorf("the id %q is no name", m[1])
		}
	})
}
