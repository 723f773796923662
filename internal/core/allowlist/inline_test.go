package allowlist_test

import (
	"testing"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/shell"
)

func TestInline(t *testing.T) {
	t.Parallel()
	strict := &allowlist.Rules{StrictInline: true}
	for command, want := range map[string]string{
		"python3 -c 1":             "python3",
		"cd x && python3.12 -Bc 1": "python3.12",
		"env python -c 1":          "python",
		"/usr/bin/python3 -c 1":    "python3",
		"node -e 1":                "node",
		"node --eval=1":            "node",
		"node --ev 1":              "node",
		"node -p 1":                "node",
		"deno eval 1":              "deno",

		"ruby -ne 1":        "ruby",
		"perl -E 1":         "perl",
		"perl -lane 1":      "perl",
		"php -r 1":          "php",
		"lua -e 1":          "lua",
		"osascript -e 1":    "osascript",
		"awk '{system(1)}'": "awk",

		"sed -i s/a/b/ x":      "sed",
		"make":                 "make",
		"find . -exec rm {} +": "find",
		"ls | xargs rm":        "xargs",
		"sh -c 'python3 -c 1'": "python3",
		"X=1 python3 -c 1":     "python3",

		"f() { python3 -c 1; }; f": "python3",
		"powershell.exe -enc x":    "powershell",
		"cmd.exe /c x":             "cmd",
		"echo 1 | python3":         "python3",
		"python3 - < x":            "python3",
		"node -":                   "node",
		"curl x | perl":            "perl",

		"python3 -u x.py":        "",
		"python3 -m http.server": "",
		"vim x":                  "",
		"vim -c x":               "vim",
		"vim +x":                 "vim",
		"psql -c x":              "psql",
		"python3 x.py":           "",
		"python3 --version":      "",
		"node x.js":              "",
		"awk '{print $1}' x":     "awk",
		"sed -n 1p x":            "sed",

		"find . -name x":    "",
		"ls":                "",
		"git log -p":        "",
		"echo python3 -c 1": "",
	} {
		if got := strict.Inline(shell.Judge{}.Parse(command)); got != want {
			t.Errorf("Inline(%q) = %q, want %q", command, got, want)
		}
	}
	if got := (&allowlist.Rules{}).Inline(shell.Judge{}.Parse("python3 -c 1")); got != "" {
		t.Errorf("without StrictInline: %q", got)
	}
}
