package arch

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// A line has at most maxLine characters, a tab counting as one. A line that a text of at
// least longText characters stands on may be longer: a message that is cut into pieces is
// no longer found by searching for it. What gofmt adds to align a column does not count.
const maxLine, longText = 120, 60

// longLines are the lines of a Go file that are too long, as "line: characters".
func longLines(src []byte) (found []string) {
	file := token.NewFileSet().AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	excused := map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.STRING && utf8.RuneCountInString(lit) >= longText {
			for line := file.Line(pos); line <= file.Line(pos+token.Pos(len(lit)-1)); line++ {
				excused[line] = true
			}
		}
	}
	for i, line := range bytes.Split(src, []byte("\n")) {
		indent := len(line) - len(bytes.TrimLeft(line, "\t"))
		n := indent + utf8.RuneCountInString(strings.Join(strings.Fields(string(line)), " "))
		if n > maxLine && !excused[i+1] {
			found = append(found, fmt.Sprintf("%d: %d characters", i+1, n))
		}
	}
	return found
}

// TestLines holds the length of lines.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", 130)
	for src, want := range map[string]int{
		"package p // " + long:                                        1,
		"package p\n\nvar s = \"" + long + "\"":                       0,
		"package p\n\nvar s = `a\n" + long + "`":                      0,
		"package p\n\nvar s = `a`" + long:                             1,
		"package p\n\nvar a =" + strings.Repeat(" ", 130):             0,
		"package p\n" + strings.Repeat("\t", 10) + "// " + long[:106]: 0,
		"package p\n" + strings.Repeat("\t", 10) + "// " + long[:108]: 1,
	} {
		if got := longLines([]byte(src)); len(got) != want {
			t.Errorf("%q: %q, want %d lines", src, got, want)
		}
	}
	root := filepath.Join("..", "..", "..")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == ".git" || e.Name() == "node_modules") {
			return fs.SkipDir
		}
		if e.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		src, err := os.ReadFile(path)
		for _, line := range longLines(src) {
			t.Errorf("%s:%s, want at most %d", path, line, maxLine)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
