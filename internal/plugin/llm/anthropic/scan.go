package anthropic

import (
	"encoding/json"

	"github.com/chela-ai/chela/internal/kit/jsonscan"
)

// scanEvent decodes an event of the usual form. It reports false for other
// events, which need encoding/json; that takes several times as long.
func scanEvent(data []byte) (event, bool) {
	var e event
	c := jsonscan.New(data)
	for c.Enter('{'); c.More('}'); {
		switch string(c.Key()) {
		case "type":
			e.Type = c.Text()
		case "index":
			e.Index = c.Int()
		case "delta":
			e.piece(&c)
		case "content_block":
			e.block(&c)
		case "message":
			e.message(&c)
		case "usage":
			e.Usage.read(&c)
		case "error":
			c.Fail()
		default:
			c.Skip()
		}
	}
	return e, c.Done()
}

func (e *event) piece(c *jsonscan.Scanner) {
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
		case "stop_reason":
			e.Delta.StopReason = c.Text()
		default:
			c.Skip()
		}
	}
}

func (e *event) block(c *jsonscan.Scanner) {
	for c.Enter('{'); c.More('}'); {
		switch string(c.Key()) {
		case "type":
			e.Block.Type = c.Text()
		case "text":
			e.Block.Text = c.Text()
		case "thinking":
			e.Block.Thinking = c.Text()
		case "signature":
			e.Block.Signature = c.Text()
		case "data":
			e.Block.Data = c.Text()
		case "id":
			e.Block.ID = c.Text()
		case "name":
			e.Block.Name = c.Text()
		case "input":
			e.Block.Input = json.RawMessage(c.Raw())
		default:
			c.Skip()
		}
	}
}

func (e *event) message(c *jsonscan.Scanner) {
	for c.Enter('{'); c.More('}'); {
		switch string(c.Key()) {
		case "model":
			e.Message.Model = c.Text()
		case "usage":
			e.Message.Usage.read(c)
		default:
			c.Skip()
		}
	}
}

func (u *usage) read(c *jsonscan.Scanner) {
	for c.Enter('{'); c.More('}'); {
		switch string(c.Key()) {
		case "input_tokens":
			u.Input = int64(c.Int())
		case "output_tokens":
			u.Output = int64(c.Int())
		case "cache_read_input_tokens":
			u.CacheRead = int64(c.Int())
		case "cache_creation_input_tokens":
			u.CacheWrite = int64(c.Int())
		default:
			c.Skip()
		}
	}
}
