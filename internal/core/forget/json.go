package forget

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
)

// fixed are the names of fields in records whose values identify something. They are in
// lower case; names that end with id, key or session are fixed too.
var fixed = []string{
	"address", "account", "agent", "channel", "peer", "thread", "principal", "credential", "scopes", "kind",
	"mode", "state", "status",
	"provider", "model", "lane", "hash", "ref", "refs", "mime", "type", "role", "expr", "tz", "at", "every", "schedule",
	"delivery", "signature",
	"thinkinglevel", "url", "k", "i", "n",
}

// Fixed reports whether the value of a field in a record identifies something, so that
// it cannot be replaced.
func Fixed(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains(fixed, name) || name == "id" || strings.HasSuffix(name, "id") ||
		strings.HasSuffix(name, "key") || strings.HasSuffix(name, "session")
}

// CutJSON returns a JSON document in which the lines about the topic are replaced by
// [Removed] in all strings, these lines, and the fixed strings that are about the topic
// and stay. A string that is itself a JSON object or list is changed in the same way.
// What is not about the topic keeps its bytes. doc stays as it is if it is not valid.
func (t Topic) CutJSON(doc string) (rest string, removed, kept []string) {
	if len(t.words) == 0 || !t.mayOccur(doc) || !json.Valid([]byte(doc)) {
		return doc, nil, nil
	}
	c := cutter{t: t, doc: doc, dec: json.NewDecoder(strings.NewReader(doc))}
	c.dec.UseNumber()
	if !c.value(false) {
		return doc, nil, nil
	}
	c.out.WriteString(doc[c.done:])
	return c.out.String(), c.removed, c.kept
}

// mayOccur reports whether the words may occur in a document, whose strings may have
// escape sequences.
func (t Topic) mayOccur(doc string) bool {
	return strings.Contains(doc, `\u`) || t.all(fold(doc))
}

// cutter copies a document.
type cutter struct {
	t       Topic
	doc     string
	dec     *json.Decoder
	out     bytes.Buffer
	done    int // the part of doc that was copied
	removed []string
	kept    []string
}

// value copies the next value. stay says that its strings stay. It reports false at the
// end and after an error.
func (c *cutter) value(stay bool) bool {
	from := int(c.dec.InputOffset())
	token, err := c.dec.Token()
	if err == io.EOF || err != nil {
		return false
	}
	switch v := token.(type) {
	case json.Delim:
		for c.dec.More() {
			below := stay
			if v == '{' {
				name, err := c.dec.Token()
				if err != nil {
					return false
				}
				key, _ := name.(string)
				if c.t.In(key) {
					c.kept = append(c.kept, key)
				}
				below = stay || Fixed(key)
			}
			if !c.value(below) {
				return false
			}
		}
		_, err := c.dec.Token() // the end of the object or list
		return err == nil
	case string:
		c.text(v, from, int(c.dec.InputOffset()), stay)
	}
	return true
}

// text copies a string, whose literal ends at end and begins after from.
func (c *cutter) text(v string, from, end int, stay bool) {
	start := from + strings.IndexByte(c.doc[from:end], '"')
	if stay {
		if _, removed := c.t.Cut(v, ""); len(removed) > 0 {
			c.kept = append(c.kept, removed...)
		}
		return
	}
	rest, removed, kept := c.t.CutText(v, Removed)
	c.kept = append(c.kept, kept...)
	if len(removed) == 0 {
		return
	}
	c.removed = append(c.removed, removed...)
	c.out.WriteString(c.doc[c.done:start])
	e := json.NewEncoder(&c.out)
	e.SetEscapeHTML(false)
	_ = e.Encode(rest)              // a string can be encoded
	c.out.Truncate(c.out.Len() - 1) // the line break
	c.done = end
}

// CutText is [Topic.CutJSON] for a text that is a JSON object or list, and [Topic.Cut]
// for others.
func (t Topic) CutText(text, instead string) (rest string, removed, kept []string) {
	if s := strings.TrimSpace(text); s != "" && (s[0] == '{' || s[0] == '[') && json.Valid([]byte(s)) {
		return t.CutJSON(text)
	}
	rest, removed = t.Cut(text, instead)
	return rest, removed, nil
}
