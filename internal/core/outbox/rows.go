package outbox

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/chunk"
)

// Rows splits text into parts and returns a pending copy of base for each part, with
// the key "<base.Key>:<part>". Blank parts are omitted, so an empty text has no rows. The
// files of base go with the first part, and its buttons with the last one.
func Rows(base Row, text string, o chunk.Options) []Row {
	var out []Row
	for _, part := range chunk.Split(text, o) {
		part = strings.TrimRight(strings.TrimLeft(part, "\n"), " \t\n")
		if strings.TrimSpace(part) == "" {
			continue
		}
		r := base
		r.Part, r.Text, r.State = len(out), part, Pending
		r.Key = fmt.Sprintf("%s:%d", base.Key, len(out))
		r.Buttons = nil
		if len(out) > 0 {
			r.Media = nil
		}
		out = append(out, r)
	}
	if len(out) > 0 {
		out[len(out)-1].Buttons = base.Buttons
	}
	return out
}

// Labels returns a text with buttons as lines below it, for platforms without buttons. A
// person answers with a label, or types the command.
func Labels(text string, buttons [][]chela.Button) string {
	var lines []string
	for _, row := range buttons {
		for _, b := range row {
			line := "- " + b.Label
			switch {
			case b.URL != "":
				line += ": " + b.URL
			case strings.HasPrefix(b.Data, "/"):
				line += ": " + b.Data
			}
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return text
	}
	return strings.TrimLeft(strings.TrimRight(text, "\n")+"\n\n"+strings.Join(lines, "\n"), "\n")
}

// Join returns the rows of two texts of one message as those of one text.
func Join(a, b []Row) []Row {
	out := slices.Concat(a, b)
	for i := range out {
		key := out[i].Key[:strings.LastIndexByte(out[i].Key, ':')]
		out[i].Part, out[i].Key = i, fmt.Sprintf("%s:%d", key, i)
	}
	return out
}

// ExtraKey returns the key of a message that a run sends in addition to its answer.
// name is unique within the run.
func ExtraKey(id chela.RunID, name string) string { return string(id) + extraInfix + name }

// extraInfix separates the run from the name in the key of an additional message.
const extraInfix = ":aside:"

// AlreadySent reports whether rows contain an additional message with the text to
// the address that has not failed. Differences in white space are ignored.
func AlreadySent(rows []Row, a chela.Address, text string) bool {
	sent := map[string]string{}
	for _, r := range rows {
		if i := strings.LastIndexByte(r.Key, ':'); r.Address == a && r.State != Failed &&
			strings.Contains(r.Key, extraInfix) {
			sent[r.Key[:i]] += " " + r.Text
		}
	}
	for _, s := range sent {
		if slices.Equal(strings.Fields(s), strings.Fields(text)) {
			return true
		}
	}
	return false
}

// BlockKey returns the key of a message with a part of an answer that is sent before the
// answer is complete. n counts the messages that begin with now.
func BlockKey(id chela.RunID, now time.Time, n int) string {
	return fmt.Sprintf("%s%s%d:%d", id, blockInfix, now.UnixNano(), n)
}

// blockInfix separates the run from the rest in the key of a part of an answer.
const blockInfix = ":block:"

// IsBlock reports whether the row is a part of an answer that was sent before the answer
// was complete.
func (r Row) IsBlock() bool { return strings.HasPrefix(r.Key, string(r.Run)+blockInfix) }

// Rest returns what remains of an answer to an address after the parts that rows contain.
// Only white space and the markers of code blocks and emphasised text, which are repeated
// where a text is divided, may differ.
func Rest(rows []Row, a chela.Address, text string) string {
	var blocks []Row
	for _, r := range rows {
		if r.IsBlock() && r.Address == a {
			blocks = append(blocks, r)
		}
	}
	slices.SortFunc(blocks, func(a, b Row) int { return cmp.Compare(a.Seq, b.Seq) })
	for i := range blocks { // the first ones may belong to earlier messages of the model
		rest, ok := text, true
		for _, r := range blocks[i:] {
			if rest, ok = cutText(rest, r.Text); !ok {
				break
			}
		}
		if ok {
			return rest
		}
	}
	return text
}

// cutText removes the beginning of a text, of which only white space and markers may differ.
// It reports false if the text begins otherwise.
func cutText(text, prefix string) (rest string, ok bool) {
	whole, begin := text, true // begin: a word begins
	for prefix != "" {
		p, n := utf8.DecodeRuneInString(prefix)
		r, m := utf8.DecodeRuneInString(text)
		switch {
		case begin && p != r && fence(prefix) > 0:
			prefix = prefix[fence(prefix):]
			continue
		case begin && p != r && fence(text) > 0:
			text = text[fence(text):]
			continue
		case p == r && text != "":
			prefix, text = prefix[n:], text[m:]
		case unicode.IsSpace(p), strings.ContainsRune(markers, p):
			prefix = prefix[n:]
		case unicode.IsSpace(r), strings.ContainsRune(markers, r) && text != "":
			text = text[m:]
		default:
			return whole, false
		}
		begin = unicode.IsSpace(p) || unicode.IsSpace(r)
	}
	return text, true
}

// markers are those of code and emphasised text.
const markers = "*_~`"

// fence returns the length of the marker of a code block at the beginning of a text, with the
// name of the language; 0: there is none.
func fence(text string) int {
	if !strings.HasPrefix(text, "```") && !strings.HasPrefix(text, "~~~") {
		return 0
	}
	if n := strings.IndexFunc(text, unicode.IsSpace); n >= 0 {
		return n
	}
	return len(text)
}
