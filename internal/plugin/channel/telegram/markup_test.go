package telegram

import (
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/plugin/channel/telegram/telegramtest"
)

func TestMarkup(t *testing.T) {
	t.Parallel()
	check(t, "TG-05 bold, code, links, lists and tables are HTML that Telegram accepts", "", func(t *testing.T, r *rig) {
		at := to(chela.Direct, ann, "")
		for _, md := range []string{
			"1 < 2 & **bold *both*** `a<b>` [link](https://a.example/?a=1&b=\"2\")", "```go\nif a < b && c {\n}\n```",
			"> quote\n> more\n\n# Title\n\n- one\n  - two\n1. three",
			"| a | b |\n|---|---|\n| 1 < 2 | & |", "~~gone~~ ||spoiler|| __under__ <script>alert(1)</script> <b>raw</b>",
			"**open `code** [x](javascript:alert(1))",
		} {
			if _, err := r.bot.Send(t.Context(), text(at, md)); err != nil {
				t.Errorf("%q: %v", md, err)
			}
		}
		got := r.srv.Messages(ann)
		for _, m := range got {
			if m.HTML == "" {
				t.Errorf("sent plain: %q", m.Text)
			}
		}
		if len(got) != 6 || got[0].HTML != `1 &lt; 2 &amp; <b>bold <i>both</i></b> <code>a&lt;b&gt;</code> <a href="https://a.example/?a=1&amp;b=%222%22">link</a>` {
			t.Errorf("%q", got[0].HTML)
		}
	})
}

func FuzzMarkup(f *testing.F) {
	f.Add("**a** `b` [c](https://d.example) | e |\n|-|\n```x\ny```")
	f.Fuzz(func(t *testing.T, md string) {
		if _, err := telegramtest.Text(render(md)); err != nil {
			t.Errorf("%q becomes %q: %v", md, render(md), err)
		}
	})
}
