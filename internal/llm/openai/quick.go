package openai

import "github.com/chela-ai/chela/internal/cursor"

// plain is what nearly every event of a stream says: a piece of text, of
// thinking or of a call's arguments, why it ends, or what it used.
type plain struct {
	model  string
	delta  delta
	finish string // why the answer ends; "": it goes on
	used   bool   // there is a usage
	usage  usage

	lists     int  // of calls
	call      bool // a piece of the arguments of the call
	index     int
	arguments string
}

// quick decodes an event that is plain, and reports whether it is: the others
// are for encoding/json, which takes several times as long.
func quick(data []byte) (plain, bool) {
	var p plain
	c := cursor.New(data)
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
		default: // an error, or something that is told seldom
			if !c.Null() {
				c.Fail()
			}
		}
	}
	return p, c.Done() && lists == 1 && (choices == 1 || choices == 0 && p.used)
}

func (p *plain) choice(c *cursor.JSON) {
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

// count takes what the call used.
func (p *plain) count(c *cursor.JSON) {
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

func (u *usage) detail(c *cursor.JSON) {
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

func (p *plain) piece(c *cursor.JSON) {
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

// arg takes a piece of the arguments of one call, which has begun.
func (p *plain) arg(c *cursor.JSON) {
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
			default: // its id: it begins
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

func (p *plain) function(c *cursor.JSON) {
	for c.Enter('{'); c.More('}'); {
		name := string(c.Key())
		switch {
		case c.Null():
		case name == "arguments":
			p.arguments = c.Text()
		default: // its name: it begins
			c.Fail()
		}
	}
}
