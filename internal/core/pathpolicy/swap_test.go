//go:build unix

package pathpolicy

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// tree makes folders with a file "f" that contains the name of its folder, and
// returns the folder above them.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(top, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name, "f"), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

// swap replaces a folder by a link.
func swap(t *testing.T, dir, target string) {
	t.Helper()
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, dir); err != nil {
		t.Fatal(err)
	}
}

// TestSwapped replaces folders by links to another one between the check of a path
// and its use.
func TestSwapped(t *testing.T) {
	t.Parallel()
	open := func(d *Dir, path, name string) (string, error) {
		f, _, err := d.OpenFile(path, name)
		if err != nil {
			return "", err
		}
		defer f.Close()
		b, err := io.ReadAll(f)
		return string(b), err
	}
	for name, rule := range map[string]Rule{"inside": {}, "anywhere": {Outside: true}} {
		t.Run(name+": the workspace, after it was opened", func(t *testing.T) {
			top := tree(t, "ws", "evil")
			d, err := rule.Open(filepath.Join(top, "ws"))
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			at, file, err := d.Resolve("f")
			if err != nil {
				t.Fatal(err)
			}
			swap(t, filepath.Join(top, "ws"), filepath.Join(top, "evil"))
			if got, err := open(at, "f", file); got != "ws" {
				t.Errorf("read %q, %v; want the file that was checked", got, err)
			}
		})
		t.Run(name+": a folder in the workspace, after the path was resolved", func(t *testing.T) {
			top := tree(t, "ws/sub", "evil")
			d, err := rule.Open(filepath.Join(top, "ws"))
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			at, file, err := d.Resolve("sub/f")
			if err != nil {
				t.Fatal(err)
			}
			swap(t, filepath.Join(top, "ws/sub"), "../../evil")
			if got, err := open(at, "sub/f", file); err == nil {
				t.Errorf("read %q; want an error", got)
			}
		})
	}
	t.Run("a folder outside, after the path was resolved", func(t *testing.T) {
		top := tree(t, "ws", "other", "evil")
		d, err := Rule{Outside: true}.Open(filepath.Join(top, "ws"))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		at, file, err := d.Resolve("../other/f")
		if err != nil {
			t.Fatal(err)
		}
		swap(t, filepath.Join(top, "other"), "evil")
		if got, err := open(at, "../other/f", file); got != "other" {
			t.Errorf("read %q, %v; want the file that was checked", got, err)
		}
	})
	for name, links := range map[string][2]string{
		"a folder above": {"other", "evil"}, // the links stay in their folder
		"the folder":     {"other/deep", "../evil/deep"},
	} {
		t.Run(name+" outside, between resolving and opening", func(t *testing.T) {
			top := tree(t, "ws", "other/deep", "evil/deep")
			d, err := Rule{Outside: true}.Open(filepath.Join(top, "ws"))
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			loc, err := d.resolver.resolve("../other/deep/f")
			if err != nil {
				t.Fatal(err)
			}
			if at, file, err := d.resolver.open(loc); err != nil {
				t.Errorf("not swapped: %v", err)
			} else if got, err := open(at, "f", file); got != "other/deep" {
				t.Errorf("not swapped: %q, %v", got, err)
			}
			swap(t, filepath.Join(top, links[0]), links[1])
			if at, file, err := d.resolver.open(loc); err == nil {
				if got, err := open(at, "f", file); err == nil {
					t.Errorf("read %q, want an error", got)
				}
			}
		})
	}
}
