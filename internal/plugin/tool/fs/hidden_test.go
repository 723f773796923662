//go:build unix

package fs_test

import (
	"strings"
	"testing"
)

// TestHiddenValues checks that what stands for hidden values is not written over them.
func TestHiddenValues(t *testing.T) {
	t.Parallel()
	const env = "API_KEY=hunter2hunter2\nDEBUG=true\nexport OTHER='hunter3'\n"
	b := newFixture(t)
	b.write(".env", env)
	b.write("notes.txt", "the key is here\n")
	seen := "API_KEY=***\nDEBUG=false\nexport OTHER=***\n"
	why := "stands for values of .env that you were not shown"
	b.fails("write", m{"path": ".env", "content": seen}, why)
	b.fails("write", m{"path": ".env.local", "content": seen}, "stands for values of .env.local")
	b.fails("write", m{"path": "prod.env", "content": seen}, "stands for values of prod.env")
	b.fails("edit", m{"path": ".env", "oldText": "DEBUG=true", "newText": "DEBUG=false\nTOKEN=***"}, why)
	b.fails("edit", m{"path": ".env", "oldText": "API_KEY=***\nDEBUG=true", "newText": "API_KEY=***\nDEBUG=false"},
		"take a text without them")
	b.fails("apply_patch",
		m{"input": "*** Begin Patch\n*** Update File: .env\n@@\n-DEBUG=true\n+DEBUG=false\n+TOKEN=***\n*** End Patch"}, why)
	b.fails("apply_patch", m{"input": "*** Begin Patch\n*** Add File: x/.env\n+TOKEN=***\n*** End Patch"}, why)
	redacted := "[redacted] stands for secrets"
	b.fails("write", m{"path": "new.txt", "content": "version [redacted]\n"}, redacted)
	b.fails("edit", m{"path": "notes.txt", "oldText": "here", "newText": "[redacted]"}, redacted)
	b.fails("apply_patch",
		m{"input": "*** Begin Patch\n*** Update File: notes.txt\n@@\n-the key is here\n+the key is [redacted]\n*** End Patch"}, redacted)
	if got := b.content(".env"); got != env {
		t.Errorf(".env is %q", got)
	}
	if got := b.content("notes.txt"); got != "the key is here\n" {
		t.Errorf("notes.txt is %q", got)
	}

	b.text("edit", m{"path": ".env", "oldText": "DEBUG=true", "newText": "DEBUG=false"})
	if got := b.content(".env"); got != strings.Replace(env, "true", "false", 1) {
		t.Errorf(".env is %q", got)
	}
	for name, text := range map[string]string{
		".env.example": seen, "page.md": "a\n\n***\n\nb *** c\n", "x.py": "print('***')\npower = 2***3\n",
		"list.txt": "[REDACTED]\n",
	} {
		b.text("write", m{"path": name, "content": text})
	}
	b.write("doc.md", "prints [redacted]\n")
	b.text("edit", m{"path": "doc.md", "oldText": "prints", "newText": "shows"})
	b.text("write", m{"path": "doc.md", "content": "It shows [redacted].\n"})
}
