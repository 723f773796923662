package tool

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// maxReason is the number of characters of a reason.
const maxReason = 300

// Reason returns what the result of a failed call says to people, on one line: without the
// JSON around it, and without the advice for models that follows; "": it does not say why.
func Reason(result string) string {
	why := strings.TrimSpace(result)
	if json.Valid([]byte(why)) {
		var d struct{ Error, Message, Reason any }
		_ = json.Unmarshal([]byte(why), &d) // what is no object has no reason
		why = ""
		for _, v := range [...]any{d.Error, d.Message, d.Reason} {
			if m, ok := v.(map[string]any); ok { // of an API
				v = m["message"]
			}
			if s, ok := v.(string); ok && why == "" {
				why = strings.TrimSpace(s)
			}
		}
	}
	why = strings.Join(strings.FieldsFunc(why, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
	for _, w := range replacements() {
		why = w.form.ReplaceAllString(why, w.say)
	}
	return humanize.Truncate(why, maxReason)
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
		{`^this needs an approval, and nobody can be asked here(?:: .*)?$`,
			`not run: it needs an approval, and nobody could be asked`},
		{`[.;] (?:Check the current state|It was not repeated|Do not|Ask the person|Call the tool|call the tool|Make the call|use write|read (?:it|the file) again|take a text|give a longer|nothing was changed: give)\b.*$`, ``},
		{` \(use exec for other files\)$`, ``},
		{`; the file tools work only inside it$`, ``},
		{`\boldText and newText\b`, `the old and the new text`},
		{`\boldText\b`, `the text`},
	} {
		out = append(out, replacement{regexp.MustCompile(w[0]), w[1]})
	}
	return out
})
