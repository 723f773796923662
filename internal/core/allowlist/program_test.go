package allowlist

import (
	"slices"
	"testing"
)

func TestCandidates(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		goos, path, pathext string
		want                []string
	}{
		{"linux", "/usr/bin/git", ".EXE", []string{"/usr/bin/git"}},
		{"darwin", "/usr/bin/x.exe", "", []string{"/usr/bin/x.exe"}},
		{"windows", `C:\Git\bin\git`, "", []string{`C:\Git\bin\git.com`, `C:\Git\bin\git.exe`}},
		{"windows", `C:\Git\bin\git`, ".COM;.EXE;.BAT;.CMD;.VBS;.PY", []string{`C:\Git\bin\git.com`, `C:\Git\bin\git.exe`}},
		{"windows", `C:\Git\bin\git`, ".exe", []string{`C:\Git\bin\git.exe`}},
		{"windows", `C:\Git\bin\git.exe`, ".COM;.EXE", []string{`C:\Git\bin\git.exe`}},
		{"windows", `C:\Git\bin\GIT.EXE`, ".COM;.EXE", []string{`C:\Git\bin\GIT.EXE`}},
		{"windows", `C:\bin\python3.12`, ".EXE", []string{`C:\bin\python3.12.exe`}},
		{"windows", `C:\bin\x.com`, ".EXE", []string{`C:\bin\x.com.exe`}},
		{"windows", `C:\bin\build.bat`, ".BAT;.EXE", []string{`C:\bin\build.bat.exe`}}, // no extension of PATHEXT
		{"windows", `C:\bin\build`, ".BAT;.CMD", nil},
	} {
		if got := candidates(tt.goos, tt.path, tt.pathext); !slices.Equal(got, tt.want) {
			t.Errorf("%s, %s, %s: %q, want %q", tt.goos, tt.path, tt.pathext, got, tt.want)
		}
	}
}
