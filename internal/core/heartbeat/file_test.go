package heartbeat

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseFile(t *testing.T) {
	t.Parallel()
	mail := Task{"mail", 30 * time.Minute, "read it"}
	for _, c := range []struct {
		name, text string
		want       File
	}{
		{"nothing", "", File{}},
		{"no instructions", "# Heartbeat\r\n\r\n## \n- \n* [ ]\n+ [x]\n```markdown\n```\n---\n<!-- do\nthis -->\n", File{}},
		{"a tag is no heading", "#tag", File{Text: "#tag"}},
		{"an open comment", "<!-- look\nat that", File{}},
		{"instructions", "# A\n- [ ] look\n", File{Text: "# A\n- [ ] look"}},
		{"a comment in instructions", "look <!-- not --> here", File{Text: "look  here"}},
		{"tasks", "tasks:\n\n- name: mail\n  interval: 30m\n  prompt: \"read it\"\n", File{Tasks: []Task{mail}}},
		{"any order, indentation and quotation marks", "tasks:\n  - interval: '30m'\n    prompt: read it\n\n    name: mail\n",
			File{Tasks: []Task{mail}}},
		{"a prompt of lines", "tasks:\n- name: a\n  interval: 1h\n  prompt: |\n    one\n    - two: 2\n    three\n- name: b\n  interval: 1d\n  prompt: first\n    second", File{Tasks: []Task{
			{"a", time.Hour, "one\n- two: 2\nthree"}, {"b", 24 * time.Hour, "first\nsecond"},
		}}},
		{"instructions around tasks", "before\ntasks:\n- name: mail\n  interval: 30m\n  prompt: read it\nafter\n  more\n",
			File{Text: "before\nafter\n  more", Tasks: []Task{mail}}},
		{"a heading after tasks", "tasks:\n- name: mail\n  interval: 30m\n  prompt: read it\n# nothing\n",
			File{Tasks: []Task{mail}}},
		{"a second list", "tasks:\n- name: mail\n  interval: 30m\n  prompt: read it\nx\ntasks:\n- name: other",
			File{Text: "x\ntasks:\n- name: other", Tasks: []Task{mail}}},
		{"tasks that are not usable", "tasks:\n- name: a\n- interval: 1h\n- name: b\n  interval: soon\n  prompt: x\n- name: c\n  interval: 0m\n  prompt: x\n- name: mail\n  interval: 30m\n  prompt: read it\n- name: mail\n  interval: 1h\n  prompt: x", File{
			Tasks: []Task{mail}, Problems: []string{
				`task "a": name and prompt are required`, "task 2: name and prompt are required",
				`task "b": "soon" is not an interval such as 30m`,
				`task "c": "0m" is not an interval such as 30m`, `task "mail": the name is used twice`,
			},
		}},
	} {
		got := ParseFile(c.text)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	var b strings.Builder
	b.WriteString("tasks:\n")
	for i := range 100 {
		fmt.Fprintf(&b, "- name: t%d\n  interval: 1h\n  prompt: x\n", i)
	}
	if f := ParseFile(b.String()); len(f.Tasks) != maxTasks || len(f.Problems) != 1 {
		t.Errorf("%d tasks, problems %q", len(f.Tasks), f.Problems)
	}
}

func TestDue(t *testing.T) {
	t.Parallel()
	f := File{Tasks: []Task{{"a", 30 * time.Minute, "x"}, {"b", 2 * time.Hour, "x"}}}
	at := func(min int) time.Time { return t0.Add(time.Duration(min) * time.Minute) }
	done := map[string]time.Time{}
	var got []string
	for min := 30; min <= 240; min += 30 {
		base, tick := at(min-30), at(min)
		due := f.Due(done, base, tick)
		done = f.Remember(done, base)
		names := ""
		for _, d := range due {
			done[d.Name] = tick
			names += d.Name
		}
		got = append(got, names)
	}
	if diff := cmp.Diff([]string{"a", "a", "a", "ab", "a", "a", "a", "ab"}, got); diff != "" {
		t.Error(diff)
	}
	f.Tasks = f.Tasks[:1]
	if done = f.Remember(done, t0); len(done) != 1 {
		t.Errorf("a removed task is remembered: %v", done)
	}
	if due := f.Due(map[string]time.Time{"a": at(1000)}, at(0), at(30)); len(due) != 1 {
		t.Error("a task that was done in the future is not due")
	}
}

// FuzzParseFile parses any text. The result is bounded, and parsing the instructions
// again gives nothing else than instructions.
func FuzzParseFile(f *testing.F) {
	for _, s := range []string{
		"", "# A\n- [ ] look\n", "tasks:\n- name: a\n  interval: 1h\n  prompt: |\n    x\nrest", "<!-- tasks:\n- name: a -->",
		"tasks:\n- \n  :\n\t- prompt:",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := ParseFile(s)
		if len(got.Tasks) > maxTasks || len([]rune(got.Text)) > maxChecklist+1 {
			t.Errorf("%d tasks, %d characters", len(got.Tasks), len([]rune(got.Text)))
		}
		names := map[string]bool{}
		for _, task := range got.Tasks {
			if task.Name == "" || task.Prompt == "" || task.Every <= 0 || names[task.Name] ||
				len([]rune(task.Prompt)) > maxPrompt {
				t.Errorf("task %+v", task)
			}
			names[task.Name] = true
		}
		if got.Empty() && got.Text != "" {
			t.Error("an empty file has instructions")
		}
	})
}
