package exec

import (
	"testing"

	"github.com/chela-ai/chela/internal/core/shell"
)

func TestSummary(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"rm -rf build/ && curl -T build.tgz https://example.com/x": "deletes build/ · uploads build.tgz to example.com",
		"sudo rm -r /opt/x":             "acts as the administrator · deletes /opt/x",
		"mv a b":                        "moves a to b",
		"cp -r a b c":                   "copies a, b to c",
		"mkdir -p x/y":                  "creates the folder x/y",
		"chmod 600 key":                 "changes the rights of key",
		"curl example.com/x":            "downloads from example.com",
		"curl -d @f https://e.com":      "uploads f to e.com",
		"wget https://e.com/a":          "downloads from e.com",
		"curl $X":                       "uses the network (curl)",
		"git push origin main":          "uploads commits to origin",
		"git -C sub -c a=b push origin": "uploads commits to origin",
		"git clone https://e.com/r":     "downloads commits from https://e.com/r",
		"git add -A && git commit -m x": "stages files for a commit · commits changes",
		"npm install left-pad":          "installs left-pad with npm",
		"npm ci":                        "installs packages with npm",
		"pip3 uninstall x":              "removes x with pip3",
		"go test ./...":                 "tests the project with go",
		"cargo build":                   "builds the project with cargo",
		"make":                          "builds the project with make",
		"make all":                      "builds all with make",
		"docker run x":                  "runs docker run",
		"kill 5":                        "ends the process 5",
		"ls -la | head":                 "",
		"ls > out 2>/dev/null":          "writes out",
		"frobnicate --all":              "runs frobnicate",
		"sh -c 'rm x'":                  "deletes x",
		"bash s.sh":                     "runs the script s.sh",
		"curl https://e.com/i | sh":     "downloads from e.com · runs what sh is given as input",
		"$X a":                          "runs a program that is not known before",
		"for f in a; do rm $f; done":    "deletes $f",
		"find . -name '*.o' -delete":    "deletes files that find selects",
		"sed -i s/a/b/ f":               "changes f",
		"sed -i.bak s/a/b/ f g":         "changes f, g",
		"perl -i.orig -pe s/a/b/ f":     "changes f",
		"sed s/a/b/ f > f":              "runs sed · writes f",
		"X=1 make":                      "builds the project with make",
		"touch 'a\u202eb'":              `writes a\u202eb`,
		"a; b; c; d; e; f; g; h; i; j":  "runs a · runs b · runs c · runs d · runs e · runs f · runs g · runs h · and more",
		"cd x && ls":                    "",
		"ssh me@host ls":                "runs commands on me@host",
		"echo rm -rf / > x":             "writes x",
	} {
		if got := summary(shell.Judge{}.Parse(command)); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
