package anthropic

import "github.com/chela-ai/chela/internal/kit/jsonscan"

// scanDelta decodes a content_block_delta, of which an answer has hundreds. It
// reports false for other events, which need encoding/json; that takes several
// times as long.
func scanDelta(data []byte) (event, bool) {
	var e event
	c := jsonscan.New(data)
	for c.Enter('{'); c.More('}'); {
		switch string(c.Key()) {
		case "type":
			e.Type = c.Text()
		case "index":
			e.Index = c.Int()
		case "delta":
			e.delta(&c)
		default:
			c.Fail()
		}
	}
	return e, c.Done()
}

func (e *event) delta(c *jsonscan.Scanner) {
	for c.Enter('{'); c.More('}'); {
		switch string(c.Key()) {
		case "type":
			e.Delta.Type = c.Text()
		case "text":
			e.Delta.Text = c.Text()
		case "thinking":
			e.Delta.Thinking = c.Text()
		case "signature":
			e.Delta.Signature = c.Text()
		case "partial_json":
			e.Delta.JSON = c.Text()
		default:
			c.Fail()
		}
	}
}
