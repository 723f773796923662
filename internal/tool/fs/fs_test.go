package fs_test

import (
	"encoding/json"
	"testing"

	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/internal/tool/fs"
)

func TestSmoke(t *testing.T) {
	set := tool.NewSet(fs.New(fs.Options{})...)
	dir := t.TempDir()
	for _, c := range [][2]string{
		{"write", `{"path":"a/b/c.txt","content":"one\ntwo\nthree"}`},
		{"edit", `{"path":"a/b/c.txt","oldText":"two","newText":"$1 zwei"}`},
		{"read", `{"path":"a/b/c.txt"}`},
		{"ls", `{}`}, {"ls", `{"path":"a/b"}`},
		{"find", `{"pattern":"*.txt"}`}, {"find", `{"pattern":"**/c.*"}`},
		{"grep", `{"pattern":"zwei","context":1}`},
		{"read", `{"path":"../x"}`},
	} {
		tl, _ := set.Get(c[0])
		r, err := tl.Run(t.Context(), tool.Call{Args: json.RawMessage(c[1]), Dir: dir, Update: func(string) {}})
		t.Log(c, err)
		if err == nil {
			t.Log(r.Content[0].Text)
		}
	}
}
