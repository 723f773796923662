package anthropic

import "github.com/chela-ai/chela/internal/dialect"

// quick decodes an event that is a piece of a block, and reports whether it is:
// the others are for encoding/json, which takes several times as long.
func quick(data []byte) (event, bool) {
	var e event
	c := dialect.NewCursor(data)
	for c.Enter('{'); c.More('}'); {
		switch string(c.Key()) {
		case "type":
			if e.Type = c.Text(); e.Type != "content_block_delta" {
				return e, false
			}
		case "index":
			e.Index = c.Int()
		case "delta":
			piece(&c, &e)
		default:
			return e, false
		}
	}
	return e, c.Done() && e.Type != ""
}

func piece(c *dialect.Cursor, e *event) {
	for c.Enter('{'); c.More('}'); {
		to := (*string)(nil)
		switch string(c.Key()) {
		case "type":
			to = &e.Delta.Type
		case "text":
			to = &e.Delta.Text
		case "thinking":
			to = &e.Delta.Thinking
		case "signature":
			to = &e.Delta.Signature
		case "partial_json":
			to = &e.Delta.JSON
		}
		if to == nil {
			c.Fail()
			return
		}
		*to = c.Text()
	}
}
