package openai

import "github.com/chela-ai/chela/internal/kit/jsonscan"

// scannedChunk is an event of the usual form: a piece of text, of thinking or
// of a call's arguments, a finish reason, or usage.
type scannedChunk struct {
	model  string
	delta  delta
	finish string // finish reason; "": none
	used   bool   // the event has usage
	usage  usage

	lists     int  // number of lists of calls
	call      bool // index and arguments are set
	index     int
	arguments string
}

// scanChunk decodes an event of the usual form. It reports false for other
// events, which need encoding/json; that takes several times as long.
func scanChunk(data []byte) (scannedChunk, bool) {
	var p scannedChunk
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
		case "usage":
			p.count(&c)
		case "id", "created", "system_fingerprint", "provider", "service_tier", "obfuscation":
			c.Skip()
		case "object":
			if c.Text() == "error" {
				c.Fail()
			}
		default: // an error, or a rare field
			if !c.Null() {
				c.Fail()
			}
		}
	}
	return p, c.Done() && lists == 1 && (choices == 1 || choices == 0 && p.used)
}

func (p *scannedChunk) choice(c *jsonscan.Scanner) {
	for c.Enter('{'); c.More('}'); {
		switch string(c.Key()) {
		case "index":
			if c.Int() != 0 {
				c.Fail()
			}
		case "delta":
			p.piece(c)
		case "finish_reason":
			if p.finish = ""; !c.Null() {
				p.finish = c.Text()
			}
		default:
			if !c.Null() {
				c.Fail()
			}
		}
	}
}

// count reads the usage.
func (p *scannedChunk) count(c *jsonscan.Scanner) {
	if p.used = !c.Null(); !p.used {
		p.usage = usage{}
		return
	}
	for c.Enter('{'); c.More('}'); {
		switch string(c.Key()) {
		case "prompt_tokens":
			p.usage.Prompt = int64(c.Int())
		case "completion_tokens":
			p.usage.Completion = int64(c.Int())
		case "prompt_cache_hit_tokens":
			p.usage.CacheHit = int64(c.Int())
		case "cached_tokens":
			p.usage.Cached = int64(c.Int())
		case "prompt_tokens_details":
			p.usage.detail(c)
		default:
			c.Skip()
		}
	}
}

func (u *usage) detail(c *jsonscan.Scanner) {
	if c.Null() {
		return
	}
	for c.Enter('{'); c.More('}'); {
		switch string(c.Key()) {
		case "cached_tokens":
			u.Details.Cached = int64(c.Int())
		default:
			c.Skip()
		}
	}
}

func (p *scannedChunk) piece(c *jsonscan.Scanner) {
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
func (p *scannedChunk) arg(c *jsonscan.Scanner) {
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
				if !c.Null() {
					c.Fail()
				}
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

func (p *scannedChunk) function(c *jsonscan.Scanner) {
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
