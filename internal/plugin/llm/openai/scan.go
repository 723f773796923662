package openai

import "github.com/chela-ai/chela/internal/kit/jsonscan"

// scannedDelta is an event of the usual form: a piece of text, of thinking or
// of a call's arguments.
type scannedDelta struct {
	model string
	delta delta // without Calls and Details

	lists     int  // number of lists of calls
	call      bool // index and arguments are set
	index     int
	arguments string
}

// scanDelta decodes an event of the usual form, of which an answer has
// hundreds. It reports false for other events, which need encoding/json; that
// takes several times as long.
func scanDelta(data []byte) (scannedDelta, bool) {
	var p scannedDelta
	c := jsonscan.New(data)
	choices, lists := 0, 0
	for c.Enter('{'); c.More('}'); {
		switch string(c.Key()) {
		case "model":
			p.model = c.Text()
		case "choices":
			lists++
			for c.Enter('['); c.More(']'); {
				choices++
				p.choice(&c)
			}
		case "id", "created", "system_fingerprint", "provider", "service_tier", "obfuscation":
			c.Skip()
		case "object":
			if c.Text() == "error" {
				c.Fail()
			}
		default: // usage, an error, or a rare field
			wantNull(&c)
		}
	}
	return p, c.Done() && lists == 1 && choices == 1
}

// wantNull fails on any value except null.
func wantNull(c *jsonscan.Scanner) {
	if !c.Null() {
		c.Fail()
	}
}

func (p *scannedDelta) choice(c *jsonscan.Scanner) {
	for c.Enter('{'); c.More('}'); {
		switch string(c.Key()) {
		case "index":
			if c.Int() != 0 {
				c.Fail()
			}
		case "delta":
			p.piece(c)
		default: // a finish reason, or a rare field
			wantNull(c)
		}
	}
}

func (p *scannedDelta) piece(c *jsonscan.Scanner) {
	for c.Enter('{'); c.More('}'); {
		to := (*string)(nil)
		switch string(c.Key()) {
		case "role":
			c.Skip()
			continue
		case "content":
			to = &p.delta.Content.text
		case "reasoning_content":
			to = &p.delta.ReasoningContent.text
		case "reasoning":
			to = &p.delta.Reasoning.text
		case "refusal":
			to = &p.delta.Refusal
		case "tool_calls":
			if p.lists++; p.lists > 1 {
				c.Fail()
			}
			if !c.Null() {
				p.arg(c)
			}
			continue
		}
		switch {
		case c.Null():
		case to == nil:
			c.Fail()
		default:
			*to = c.Text()
		}
	}
}

// arg reads a piece of the arguments of a started call.
func (p *scannedDelta) arg(c *jsonscan.Scanner) {
	n := 0
	for c.Enter('['); c.More(']'); {
		n++
		indexed := false
		for c.Enter('{'); c.More('}'); {
			switch string(c.Key()) {
			case "index":
				p.index, indexed = c.Int(), true
			case "type":
				c.Skip()
			case "function":
				p.function(c)
			default: // id: the call starts
				wantNull(c)
			}
		}
		if !indexed {
			c.Fail()
		}
	}
	if n > 1 {
		c.Fail()
	}
	p.call = n == 1
}

func (p *scannedDelta) function(c *jsonscan.Scanner) {
	for c.Enter('{'); c.More('}'); {
		name := string(c.Key())
		switch {
		case c.Null():
		case name == "arguments":
			p.arguments = c.Text()
		default: // name: the call starts
			c.Fail()
		}
	}
}
