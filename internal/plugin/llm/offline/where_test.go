package offline

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
)

// TestWhere asks for the folder in which the assistant works.
func TestWhere(t *testing.T) {
	t.Parallel()
	for _, say := range []string{"what is the current folder?", "which folder are you working in?",
		"what's the name of this directory", "where is the workspace?", "当前目录是什么？", "当前目录叫什么名字？", "你在哪个文件夹里工作？", "工作区在哪里"} {
		r := request(allTools, llm.User(say))
		if text, calls, unable := New().answer(r, testNow); len(calls) > 0 || !unable ||
			!strings.Contains(text, "folder I work") && !strings.Contains(text, "哪个文件夹里工作") {
			t.Errorf("%q without a workspace: %q, %v", say, text, calls)
		}
		r.System[0].Text += "\n## Workspace\n\nYour working directory is: /home/ann/work\nUse it for all files unless instructed otherwise.\n"
		if text, calls, unable := New().answer(r, testNow); len(calls) > 0 || unable ||
			!strings.Contains(text, "`/home/ann/work`") {
			t.Errorf("%q: %q, %v", say, text, calls)
		}
	}
	has(t, newWhole(t).say("show gone.txt"), "gone.txt does not exist in the workspace.")
	has(t, newWhole(t).say("看看 gone.txt"), "在工作区里找过")
	if reply := newWhole(t).say("show /gone.txt"); strings.Contains(reply, "in the workspace") {
		t.Error(reply)
	}
}
