package fs

import (
	"strings"
	"testing"
)

func FuzzMask(f *testing.F) {
	for _, s := range []string{"", "A=1\n", "A='x\ny'\n", "# c\n", "export B=\"q\"\n", "C=`\n`\n",
		"no setting\n", "=\n", "A=\"\n"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "hunter2hunter2"
		var m masker
		for line := range strings.SplitSeq(before+"\nKEY="+secret+"\n"+after, "\n") {
			if got, _ := m.line(line); strings.Contains(got, secret) && !strings.Contains(before+after, secret) {
				t.Errorf("%q is not masked after %q", got, before)
			}
		}
	})
}
