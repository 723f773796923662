package tool_test

import (
	"testing"

	"github.com/chela-ai/chela/internal/core/tool"
)

// TestReason gives the texts that models get, and what a person is shown.
func TestReason(t *testing.T) {
	for _, tc := range [][2]string{
		{`{"status":"error","tool":"read","error":"a.txt does not exist"}`, "a.txt does not exist"},
		{"boom\nand more", "boom and more"},
		{"Interrupted while this was running: its outcome is unknown. It was not repeated. Check the current state before you decide what to do.", "Interrupted while this was running: its outcome is unknown"},
		{`{"error":{"message":"no such place","code":7}}`, "no such place"},
		{`{"message":"","reason":"closed"}`, "closed"},
		{`{"ok":false}`, ""},
		{`[]`, ""},
		{`{"status":"error","tool":"exec","error":"not run: denied by owner. Do not try to achieve it in another way; call the tool again only if the person asks for it"}`, "not run: denied"},
		{"not run: denied by ann. Do not try to achieve it in another way; call the tool again only if the person asks for it", "not run: denied by ann"},
		{"not run: it needs an approval, and nobody could be asked. Do not try to achieve it in another way",
			"not run: it needs an approval, and nobody could be asked"},
		{"this needs an approval, and nobody can be asked here: make may change files",
			"not run: it needs an approval, and nobody could be asked"},
		{"not run: the approval request expired without an answer. Ask the person whether the call is still wanted, then call the tool again to make a new request", "not run: the approval request expired without an answer"},
		{"not run: the approval request was withdrawn because the run was stopped. Call the tool again if it is still wanted", "not run: the approval request was withdrawn because the run was stopped"},
		{"oldText does not occur in a.txt; read the file again and copy the text exactly",
			"the text does not occur in a.txt"},
		{"oldText occurs 2 times in a.txt; nothing was changed: give a longer text that occurs once",
			"the text occurs 2 times in a.txt"},
		{"oldText and newText are the same", "the old and the new text are the same"},
		{"/etc/x is outside the workspace /w; the file tools work only inside it (use exec for other files)",
			"/etc/x is outside the workspace /w"},
		{"a.txt was changed by another program in the meantime; read it again",
			"a.txt was changed by another program in the meantime"},
	} {
		if got := tool.Reason(tc[0]); got != tc[1] {
			t.Errorf("%q:\n got %q\nwant %q", tc[0], got, tc[1])
		}
	}
}
