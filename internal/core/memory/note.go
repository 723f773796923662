package memory

import (
	"strings"
	"time"
)

// Note is a file that is searched.
type Note struct {
	Path    string // see [Hit]
	Size    int64  // bytes
	Changed time.Time
	Chunks  int
	Problem string // why it is not searched; "": it is
}

// Sources of notes.
const (
	SourceMemory = "memory" // MEMORY.md and the folder memory of the workspace
	SourceExtra  = "extra"  // memorySearch.extraPaths
)

// SourceOf returns the source of the note with a path.
func SourceOf(path string) string {
	if path == "MEMORY.md" || path == "memory.md" || strings.HasPrefix(path, "memory/") {
		return SourceMemory
	}
	return SourceExtra
}

// Imports is the folder of notes that other assistants wrote.
const Imports = "memory/imports/"

// Untrusted reports whether the note with a path comes from elsewhere, so that a model may
// use it as data but not do what it says.
func Untrusted(path string) bool { return strings.HasPrefix(path, Imports) }

// PrivateNames are the files and folders of a workspace that only the person reads: they
// are not used in groups.
func PrivateNames() []string {
	return []string{"MEMORY.md", "memory", "memory.md", "USER.md", "DREAMS.md"}
}

// Window is some lines of a note.
type Window struct {
	Text        string
	First, Last int  // numbers of the lines; First is Last + 1 if there are none
	Total       int  // lines of the note
	Cut         bool // the text ends within a line
}

// Limits of a [Window].
const (
	DefaultLines = 120
	MaxWindow    = 12_000 // bytes
)

// Lines returns up to n lines of a note, beginning with line from, within [MaxWindow].
// from and n may be 0.
func Lines(note []byte, from, n int) Window {
	if n <= 0 {
		n = DefaultLines
	}
	text := strings.ToValidUTF8(string(note), "\uFFFD")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	from = min(max(from, 1), len(lines)+1) - 1
	end := min(n, len(lines)-from) + from
	size := 0
	for i, line := range lines[from:end] {
		if size += len(line) + 1; size > MaxWindow && i > 0 {
			end = from + i
			break
		}
	}
	w := Window{Text: strings.Join(lines[from:end], "\n"), First: from + 1, Last: end, Total: len(lines)}
	if len(w.Text) > MaxWindow {
		w.Text, w.Cut = strings.ToValidUTF8(w.Text[:MaxWindow], ""), true
	}
	return w
}
