package sandbox

import (
	"path/filepath"
	"testing"
)

// TestPaths converts paths between the host and a container.
func TestPaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	host := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	in := &Session{Workspace: host("ws"), Workdir: "/workspace", Scratch: "/scratch", Container: "c"}
	out := &Session{Workspace: host("ws"), Workdir: host("ws")}
	for _, tt := range []struct{ host, container, plain string }{ // "": refused
		{host("ws"), "/workspace", host("ws")},
		{host("ws/a/b"), "/workspace/a/b", host("ws/a/b")},
		{host("ws/a/../b"), "/workspace/b", host("ws/a/../b")},
		{host("other"), "", ""},
		{host("ws/../other"), "", ""},
		{host("wsx"), "", ""},
		{"a", "", ""},
	} {
		for s, want := range map[*Session]string{in: tt.container, out: tt.plain} {
			if got, ok := s.ContainerPath(tt.host); got != want || ok != (want != "") {
				t.Errorf("%s in the container %q is %q, %v; want %q", tt.host, s.Container, got, ok, want)
			}
		}
	}
	for name, want := range map[string]string{
		"/workspace":        host("ws"),
		"/workspace/a/b":    host("ws/a/b"),
		"/workspace/a/../b": host("ws/b"),
		"/workspace/":       host("ws"),
		"/workspace/../etc": "",
		"/workspacex":       "",
		"/":                 "",
		"/etc/passwd":       "",
		"a":                 "",
		"":                  "",
	} {
		if got, ok := in.HostPath(name); got != want || ok != (want != "") {
			t.Errorf("%s on the host is %q, %v; want %q", name, got, ok, want)
		}
		if got, ok := out.HostPath(name); ok {
			t.Errorf("without a container, %s is %q", name, got)
		}
	}
	for name, want := range map[string]bool{
		"/scratch":      true,
		"/scratch/a":    true,
		"/scratch/../a": false,
		"/scratchx":     false,
		"scratch":       false,
		"/workspace":    false,
	} {
		if got := in.InScratch(name); got != want {
			t.Errorf("%s is in the scratch folder: %v", name, got)
		}
		if out.InScratch(name) {
			t.Errorf("%s is in a scratch folder, though there is none", name)
		}
	}
}
