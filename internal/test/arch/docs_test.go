package arch

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/engine/inbound"
)

func doc(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDocs compares the lists in the documentation with the code.
func TestDocs(t *testing.T) {
	t.Parallel()
	t.Run("the configuration page lists exactly the keys that are read", func(t *testing.T) {
		if diff := cmp.Diff(usedKeys(), slices.Sorted(maps.Keys(keysOf(doc(t, "docs/config.md"))))); diff != "" {
			t.Errorf("-table +page:\n%s", diff)
		}
	})
	t.Run("the chat page lists every command with its aliases", func(t *testing.T) {
		row := regexp.MustCompile("(?m)^\\| `/([\\w-]+)[^|]*\\|(.*)\\|$")
		alias := regexp.MustCompile("`/([\\w-]+)`")
		got := map[string][]string{}
		for _, m := range row.FindAllStringSubmatch(doc(t, "docs/chat.md"), -1) {
			aliases := got[m[1]] // one command may have several rows
			for _, a := range alias.FindAllStringSubmatch(m[2], -1) {
				aliases = append(aliases, a[1])
			}
			got[m[1]] = aliases
		}
		want := map[string][]string{}
		for _, c := range inbound.Commands() {
			want[c.Name] = c.Aliases
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-commands +page:\n%s", diff)
		}
	})
	t.Run("the page about messages lists what each channel can do", func(t *testing.T) {
		_, table, _ := strings.Cut(doc(t, "docs/messages.md"), "\n| action |")
		table, _, _ = strings.Cut(table, "\n\n")
		lines := strings.Split(table, "\n")
		got, want := map[string][]action.Action{}, map[string][]action.Action{}
		names := strings.Split(strings.Trim(lines[0], " |"), " | ")
		for _, line := range lines[2:] {
			head, cells, _ := strings.Cut(strings.Trim(line, "|"), "|")
			for i, cell := range strings.Split(cells, "|") {
				for _, m := range regexp.MustCompile("`([\\w-]+)`").FindAllStringSubmatch(head, -1) {
					if name := strings.ToLower(names[i]); strings.TrimSpace(cell) != "–" {
						got[name] = append(got[name], action.Action(m[1]))
					}
				}
			}
		}
		for _, f := range standard.New().Channels() {
			want[f.Name] = action.Of(f.Can)
		}
		if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b action.Action) bool { return a < b })); diff != "" {
			t.Errorf("-channels +page:\n%s", diff)
		}
	})
	t.Run("the path of a message names what exists", func(t *testing.T) {
		_, path, _ := strings.Cut(doc(t, "docs/architecture.md"), "## One message")
		path, _, _ = strings.Cut(path, "\n## ")
		stops := regexp.MustCompile("`([\\w/]+\\.go)` \\(([^)]*)\\)").FindAllStringSubmatch(path, -1)
		if len(stops) == 0 {
			t.Error("the page names no file")
		}
		for _, m := range stops {
			file := m[1]
			if !strings.HasPrefix(file, "client/") && !strings.HasPrefix(file, "cmd/") {
				file = "internal/" + file
			}
			code := doc(t, file)
			for _, name := range regexp.MustCompile(`\w+`).FindAllString(m[2], -1) {
				if !regexp.MustCompile(`(?m)^(func (\([^)]*\) )?` + name + `[\[(]|type ` + name + `\b)`).MatchString(code) {
					t.Errorf("%s has neither a function nor a type %s", file, name)
				}
			}
		}
	})
	t.Run("links have targets", func(t *testing.T) {
		link := regexp.MustCompile(`\]\(([^):]+)\)`)
		for _, page := range pages(t) {
			for _, m := range link.FindAllStringSubmatch(doc(t, page), -1) {
				file, anchor, _ := strings.Cut(m[1], "#")
				target := page
				if file != "" {
					target = filepath.ToSlash(filepath.Join(filepath.Dir(page), file))
				}
				if _, err := os.Stat(filepath.Join("..", "..", "..", target)); err != nil {
					t.Errorf("%s: %s: %v", page, m[1], err)
				} else if anchor != "" && !slices.Contains(anchors(doc(t, target)), anchor) {
					t.Errorf("%s: %s: no such heading", page, m[1])
				}
			}
		}
	})
	t.Run("README.md has less than 120 lines", func(t *testing.T) {
		if n := strings.Count(doc(t, "README.md"), "\n"); n >= 120 {
			t.Errorf("README.md has %d lines, want less than 120", n)
		}
	})
}

func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("..", "..", "..", "docs", "*.md"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	out := []string{"README.md", "README.zh-CN.md"}
	for _, f := range found {
		out = append(out, "docs/"+filepath.Base(f))
	}
	return out
}

// usedKeys returns the configuration keys that this build reads, without keys
// that are only parents of others.
func usedKeys() []string {
	var all []string
	for _, k := range config.Keys() {
		if k.Used() && k.Path != "$schema" {
			all = append(all, k.Path)
		}
	}
	return slices.DeleteFunc(all, func(p string) bool {
		if p == "agents.defaults.mediaModels.image" || p == "agents.defaults.imageGenerationModel" ||
			p == "agents.defaults.model" || p == "agents.defaults.models" || p == "agents.list[].model" ||
			p == "agents.list[].sandbox.docker" || p == "agents.list[].subagents" || p == "agents.list[].heartbeat" ||
			p == "agents.list[].memorySearch" || p == "agents.list[].compaction" || p == "agents.list[].contextPruning" ||
			strings.HasSuffix(p, ".headers") && !strings.HasPrefix(p, "agents.list[].memorySearch.") {
			return false // documented as one value
		}
		return strings.HasPrefix(p, "agents.defaults.mediaModels.image.") ||
			strings.HasPrefix(p, "agents.defaults.imageGenerationModel.") || strings.HasPrefix(p, "agents.defaults.model.") ||
			strings.HasPrefix(p, "agents.defaults.models.") || strings.HasPrefix(p, "agents.list[].model.") ||
			strings.HasPrefix(p, "agents.list[].sandbox.docker.") || strings.HasPrefix(p, "agents.list[].subagents.") ||
			strings.HasPrefix(p, "agents.list[].heartbeat.") || strings.HasPrefix(p, "agents.list[].memorySearch.") ||
			strings.HasPrefix(p, "agents.list[].compaction.") || strings.HasPrefix(p, "agents.list[].contextPruning.") ||
			p == "agents.entries" || strings.HasSuffix(p, ".headers.*") ||
			slices.ContainsFunc(all, func(q string) bool { return strings.HasPrefix(q, p+".") || strings.HasPrefix(q, p+"[].") })
	})
}

// keysOf returns the keys in the tables of a page. The heading above a table may
// name the parent of its keys. A table under a fourth-level heading describes the
// contents of a value and is skipped.
func keysOf(page string) map[string]bool {
	heading := regexp.MustCompile("^### .*: `([^`]+)`$")
	row := regexp.MustCompile("^\\| `([^`]+)` \\|")
	keys, below, inside := map[string]bool{}, "", false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "#") {
			below, inside = "", strings.HasPrefix(line, "####")
		}
		if m := heading.FindStringSubmatch(line); m != nil {
			below = m[1] + "."
		}
		if m := row.FindStringSubmatch(line); m != nil && !inside {
			key := regexp.MustCompile(`<\w+>`).ReplaceAllString(m[1], "*")
			if !strings.HasPrefix(key, below) {
				key = below + key
			}
			keys[key] = true
		}
	}
	return keys
}

// anchors returns the link anchors of the headings of a page.
func anchors(page string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(m[1]), "")
		out = append(out, strings.ReplaceAll(name, " ", "-"))
	}
	return out
}
