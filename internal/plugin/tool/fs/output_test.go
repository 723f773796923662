package fs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/plugin/tool/fs"
)

// TestOutput reads and searches complete outputs of tools.
func TestOutput(t *testing.T) {
	t.Parallel()
	files, err := media.Open(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	var b strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&b, "line %d of a long output\n", i+1)
	}
	ref, err := files.PutOutput(b.String())
	if err != nil {
		t.Fatal(err)
	}
	single, err := files.PutOutput(strings.Repeat("ä", 5000) + "needle" + strings.Repeat("x", 9<<20))
	if err != nil {
		t.Fatal(err)
	}
	for _, outside := range []bool{false, true} {
		tools := map[string]tool.Tool{}
		list, err := fs.Configured(nil, pathpolicy.Rule{Outside: outside}, files.OpenOutput, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tl := range list {
			tools[tl.Spec().Name] = tl
		}
		dir := t.TempDir()
		call := func(name string, room int, args map[string]any) (string, error) {
			t.Helper()
			raw, _ := json.Marshal(args)
			c := tool.Call{ID: "c", Args: raw, Dir: dir, Room: room, Update: func(string) {}}
			if p, ok := tools[name].(tool.Planner); ok {
				plan, err := p.Plan(t.Context(), c)
				if err != nil || plan.Ask || plan.Deny != "" {
					t.Fatalf("plan %+v, %v", plan, err)
				}
				c.Plan = &plan
			}
			r, err := tools[name].Run(t.Context(), c)
			if err != nil {
				return "", err
			}
			return r.Content[0].Text, nil
		}
		got, err := call("read", 5000, map[string]any{"path": "media:" + ref, "offset": 150_000})
		if err != nil || !strings.Contains(got, "150000\tline 150000 of") || len(got) > 5000 ||
			!strings.Contains(got, "More lines follow") {
			t.Errorf("read: %.80q, %d characters, %v", got, len(got), err)
		}
		if got, err = call("grep", 0, map[string]any{"path": "media:" + ref, "pattern": "line 17777[78] "}); err != nil ||
			!strings.Contains(got, ":177777: line 177777 of") || strings.Count(got, "\n") > 3 {
			t.Errorf("grep: %q, %v", got, err)
		}
		got, err = call("grep", 0, map[string]any{"path": "media:" + single, "pattern": "needle"})
		if err != nil || !strings.Contains(got, ":6: ") {
			t.Errorf("grep in one line: %.80q, %v", got, err)
		}
		if got, err = call("read", 0, map[string]any{"path": "media:" + single, "offset": 6, "limit": 1}); err != nil ||
			!strings.Contains(got, "needle") {
			t.Errorf("read of one line: %.80q, %v", got, err)
		}
		gone := "media:" + strings.Repeat("0", 32)
		for name, args := range map[string]map[string]any{"read": {"path": gone}, "grep": {"path": gone, "pattern": "x"}} {
			if _, err := call(name, 0, args); err == nil || !strings.Contains(err.Error(), "no longer stored") {
				t.Errorf("%s of a removed output: %v", name, err)
			}
		}
		// A reference is not a way around the rules about paths.
		if outside {
			continue
		}
		target := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(target, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		link := "media:" + strings.Repeat("1", 32)
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			needtest.Missing(t, "symbolic links")
		}
		if got, err := call("read", 0, map[string]any{"path": link}); err == nil {
			t.Errorf("a link was read: %q", got)
		}
	}
}
