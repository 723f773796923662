//go:build unix

package fs_test

import (
	"strings"
	"testing"
	"unicode/utf16"
)

// wide returns a text in UTF-16.
func wide(s string, big bool) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		if big {
			b.WriteByte(byte(u >> 8))
		}
		b.WriteByte(byte(u))
		if !big {
			b.WriteByte(byte(u >> 8))
		}
	}
	return b.String()
}

// TestCharsets checks that files in other encodings are shown, and that each way to
// change them keeps their encoding.
func TestCharsets(t *testing.T) {
	t.Parallel()
	latin := func(s string) string {
		return strings.NewReplacer("é", "\xe9", "ü", "\xfc", "ß", "\xdf", "ö", "\xf6", "ä", "\xe4", "–", "\x96").Replace(s)
	}
	german := "Die Straße führt über die Brücke, und der Bär hört höfliche Grüße – immer.\nzweite Zeile\n"
	utf16 := "first línea\r\nzweite Zeile\r\n"
	for _, tt := range []struct {
		name, note string
		text       string // of the file, in UTF-8
		encode     func(string) string
	}{
		{"windows-1252", "windows-1252", german, latin},
		{"UTF-16LE with a mark", "UTF-16LE", utf16, func(s string) string { return "\xff\xfe" + wide(s, false) }},
		{"UTF-16BE with a mark", "UTF-16BE", utf16, func(s string) string { return "\xfe\xff" + wide(s, true) }},
		{"UTF-16LE", "UTF-16LE", utf16, func(s string) string { return wide(s, false) }},
		{"UTF-8 with a mark", "", german, func(s string) string { return "\ufeff" + s }},
		{"UTF-8", "", german, func(s string) string { return s }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newFixture(t)
			same := func(want string) {
				t.Helper()
				if got := b.content("f"); got != tt.encode(want) {
					t.Errorf("the file is %q, want %q", got, tt.encode(want))
				}
			}
			b.write("f", tt.encode(tt.text))
			got := b.text("read", m{"path": "f"})
			first, _, _ := strings.Cut(strings.ReplaceAll(tt.text, "\r", ""), "\n")
			if !strings.Contains(got, "     1\t"+first+"\n") ||
				(tt.note == "") == strings.Contains(got, "The file is in "+tt.note) {
				t.Errorf("read: %q", got)
			}
			if got := b.text("grep", m{"pattern": "zweite.*Zeile"}); !strings.Contains(got, "zweite Zeile") {
				t.Errorf("grep: %q", got)
			}
			b.text("edit", m{"path": "f", "oldText": first, "newText": "größer: é"})
			changed := strings.Replace(tt.text, first, "größer: é", 1)
			same(changed)
			b.text("apply_patch",
				m{"input": "*** Begin Patch\n*** Update File: f\n@@\n-größer: é\n+älter\n zweite Zeile\n*** End Patch"})
			same(strings.Replace(changed, "größer: é", "älter", 1))
			b.text("write", m{"path": "f", "content": "neu: ä\n"})
			same("neu: ä\n")
		})
	}
	t.Run("characters that the encoding does not have are refused", func(t *testing.T) {
		b := newFixture(t)
		b.write("f", latin(german))
		for tool, args := range map[string]m{
			"write": {"content": "漢\n"}, "edit": {"oldText": "zweite", "newText": "漢"},
			"apply_patch": {"input": "*** Begin Patch\n*** Update File: f\n@@\n-zweite Zeile\n+漢\n*** End Patch"},
		} {
			if tool != "apply_patch" {
				args["path"] = "f"
			}
			b.fails(tool, args, `f is in windows-1252, which has no '漢'`)
		}
		if b.content("f") != latin(german) {
			t.Error("the file was changed")
		}
	})
	t.Run("bytes that are not shown are not replaced", func(t *testing.T) {
		b := newFixture(t)
		const damaged = "你好\xff世界，这是一个测试\nline\n"
		b.write("f", damaged)
		b.fails("write", m{"path": "f", "content": "你好\ufffd世界，这是一个测试\nother\n"}, "would be replaced by that character")
		b.text("edit", m{"path": "f", "oldText": "line", "newText": "other"})
		if got := b.content("f"); got != strings.Replace(damaged, "line", "other", 1) {
			t.Errorf("the file is %q", got)
		}
	})
	t.Run("symbols of control characters are these characters", func(t *testing.T) {
		b := newFixture(t)
		b.write("f", "\x1b[31mred\x1b[0m\nplain\n")
		b.text("edit", m{"path": "f", "oldText": "\u241b[31mred", "newText": "\u241b[32mgreen"})
		if got := b.content("f"); got != "\x1b[32mgreen\x1b[0m\nplain\n" {
			t.Errorf("after edit: %q", got)
		}
		b.text("apply_patch", m{"input": "*** Begin Patch\n*** Update File: f\n@@\n-\u241b[32mgreen\u241b[0m\n+\u241b[34mblue\u241b[0m\n plain\n*** End Patch"})
		if got := b.content("f"); got != "\x1b[34mblue\x1b[0m\nplain\n" {
			t.Errorf("after apply_patch: %q", got)
		}
		b.text("write", m{"path": "f", "content": "\u241b[1mbold\u241b[0m\n"})
		if got := b.content("f"); got != "\x1b[1mbold\x1b[0m\n" {
			t.Errorf("after write: %q", got)
		}
		b.text("write", m{"path": "new", "content": "the symbol \u241b\n"})
		if got := b.content("new"); got != "the symbol \u241b\n" {
			t.Errorf("a new file: %q", got)
		}
	})
	t.Run("a symbol that also stands for a control character is not guessed", func(t *testing.T) {
		const text = "head\n\x1b[31mred\x1b[0m\nlit \u241b[32m\nlast\n"
		b := newFixture(t)
		b.write("f", text)
		b.fails("write", m{"path": "f", "content": "HEAD\n\u241b[31mred\u241b[0m\nlit \u241b[32m\nlast\n"},
			"cannot be told apart here; nothing was written")
		b.fails("edit", m{"path": "f", "oldText": "\u241b[31mred", "newText": "blue"},
			"also stands for a control character in f; take a text without it")
		b.text("edit", m{"path": "f", "oldText": "head", "newText": "HEAD"})
		if got := b.content("f"); got != strings.Replace(text, "head", "HEAD", 1) {
			t.Errorf("after edit: %q", got)
		}
		b.text("write", m{"path": "f", "content": "anew\n"})
	})
}
