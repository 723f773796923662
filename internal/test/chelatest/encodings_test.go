package chelatest

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/chela-ai/chela/wire"
)

// inLatin1 returns a text in Latin-1.
func inLatin1(s string) string {
	var b []byte
	for _, r := range s {
		b = append(b, byte(r))
	}
	return string(b)
}

// inUTF16 returns a text in UTF-16 with a byte order mark.
func inUTF16(s string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

// TestEncodings checks that the files that make the assistant are read in the encoding that
// they have: those of the prompt, notes, agent types, skills and hooks.
func TestEncodings(t *testing.T) {
	t.Parallel()
	for name, encode := range map[string]func(string) string{
		"UTF-8": func(s string) string { return s }, "UTF-8 with a mark": func(s string) string { return "\ufeff" + s },
		"Latin-1": inLatin1, "UTF-16": inUTF16,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write := func(name, text string) { writeUnder(t, dir, "workspace/"+name, encode(text)) }
			write("USER.md", "Jürgen Müßig wohnt in Köln und mag Züge.\r\n")
			write("MEMORY.md", "- Die Mutter von Jürgen heißt Käthe.\r\n")
			write("memory/2026-01-01.md", "# Tag\r\n\r\nDer Schlüssel liegt beim Bäcker.\r\n")
			write("agents/prüfer.md",
				"---\r\nname: checker\r\ndescription: prüft Rechnungen für Käufer\r\n---\r\nSei höflich.\r\n")
			write("skills/zug/SKILL.md",
				"---\r\nname: zug\r\ndescription: findet Züge nach München\r\n---\r\nFrage höflich.\r\n")
			write("skills/bahn/skill.md", "---\r\nname: bahn\r\ndescription: fährt über Köln\r\n---\r\n")
			write("hooks/gruß/hook.md", "---\r\nname: gruss\r\ndescription: grüßt jeden für sich\r\nmetadata:\r\n  openclaw:\r\n    events: command:new, message:sent\r\n---\r\n")
			model := sayOK()
			c := Start(t, Options{Dir: dir, Model: model}).Client()
			c.Ask("main", "hi")
			prompt, _ := json.Marshal(model.Requests())
			for _, want := range []string{"Jürgen Müßig wohnt in Köln", "Jürgen heißt Käthe", "prüft Rechnungen für Käufer",
				"findet Züge nach München", "fährt über Köln"} {
				if !strings.Contains(string(prompt), want) {
					t.Errorf("the prompt has no %q", want)
				}
			}
			var hits wire.MemoryHits
			c.must(wire.MethodMemorySearch, wire.MemorySearch{Query: "schlüssel bäcker"}, &hits)
			if found, _ := json.Marshal(hits); !strings.Contains(string(found), "Der Schlüssel liegt beim Bäcker.") {
				t.Errorf("the search found %s", found)
			}
			var note wire.MemoryText
			c.must(wire.MethodMemoryGet, wire.MemoryGet{Path: "memory/2026-01-01.md"}, &note)
			if text, _ := json.Marshal(note); !strings.Contains(string(text), "Schlüssel") {
				t.Errorf("the note: %s", text)
			}
			var hooks wire.HooksStatus
			c.must(wire.MethodHooksStatus, wire.HooksGet{}, &hooks)
			if list, _ := json.Marshal(hooks); !strings.Contains(string(list), "grüßt jeden für sich") ||
				!strings.Contains(string(list), `"command:new","message:sent"`) {
				t.Errorf("the hooks: %s", list)
			}
		})
	}
}
