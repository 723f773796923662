package tool

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"
)

// Reason returns what the result of a failed call says to people, on one line: without the
// form that models get, and without the advice for them that follows.
func Reason(result string) string {
	why := strings.TrimSpace(result)
	var e struct {
		Error string `json:"error"`
	}
	if json.Unmarshal([]byte(why), &e) == nil && e.Error != "" {
		why = strings.TrimSpace(e.Error)
	}
	why, _, _ = strings.Cut(why, "\n")
	for _, w := range replacements() {
		why = w.form.ReplaceAllString(why, w.say)
	}
	return why
}

// replacement is how a text for models is put for people.
type replacement struct {
	form *regexp.Regexp
	say  string
}

// replacements: the advice is cut, and names of parameters are described.
var replacements = sync.OnceValue(func() []replacement {
	var out []replacement
	for _, w := range [...][2]string{
		{`^not run: denied by (?:owner|the person)\b`, `not run: denied`},
		{`^this needs an approval, and nobody can be asked here(?:: .*)?$`, `not run: it needs an approval, and nobody could be asked`},
		{`[.;] (?:Do not|Ask the person|Call the tool|call the tool|Make the call|use write|read (?:it|the file) again|take a text|give a longer|nothing was changed: give)\b.*$`, ``},
		{` \(use exec for other files\)$`, ``},
		{`; the file tools work only inside it$`, ``},
		{`\boldText and newText\b`, `the old and the new text`},
		{`\boldText\b`, `the text`},
	} {
		out = append(out, replacement{regexp.MustCompile(w[0]), w[1]})
	}
	return out
})
