package exec_test

import (
	"encoding/json"
	"testing"

	"github.com/chela-ai/chela/internal/sandbox/host"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/internal/tool/exec"
)

func TestSmoke(t *testing.T) {
	tl, err := exec.New(exec.Options{Broker: host.Broker{}, Mode: exec.ModeFull})
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range []string{"pwd", "echo a; echo b >&2; exit 3", "true", "seq 1 20000", "sleep 100 & echo x"} {
		args, _ := json.Marshal(map[string]string{"command": cmd})
		c := tool.Call{Args: args, Dir: t.TempDir(), Update: func(s string) {}}
		p, err := tl.(tool.Planner).Plan(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		c.Plan = &p
		r, err := tl.Run(t.Context(), c)
		s := ""
		if len(r.Content) > 0 {
			s = r.Content[0].Text
		}
		t.Logf("%s\n%v %d %s %s\n%.300s", p.Text, err, len(s), r.Details, p.Hash, s)
	}
}
