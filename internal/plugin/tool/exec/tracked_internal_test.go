package exec

import (
	"strings"
	"testing"
)

func TestPrivateOfGit(t *testing.T) {
	for _, c := range []struct{ name, output, want string }{
		{"E1 unreadable", "error: open(\".env\"): Permission denied\nfatal: cannot hash .env\n", "-- . ':(exclude).env' "},
		{"E1 unreadable, in place of commit -a",
			"error: open(\"sub/.env\"): Permission denied\nerror: unable to index file 'sub/.env'\n",
			"git add -u -- . ':(exclude)sub/.env' "},
		{"E1 to be replaced",
			"error: unable to unlink old '.env': Device or resource busy\nfatal: Could not reset index file to revision 'x'.\n", "use host gateway"},
		{"E1 to be overwritten", "error: Your local changes to the following files would be overwritten by checkout:\n\ta.txt\n\tsub/key.pem\nPlease commit", "use host gateway"},
		{"E1 others to be overwritten",
			"error: Your local changes to the following files would be overwritten by checkout:\n\ta.txt\nPlease commit", ""},
		{"E1 other files", "error: open(\"a.txt\"): Permission denied\n\t.env\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := privateOfGit(c.output); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
