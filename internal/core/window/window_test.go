package window

import (
	"errors"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	t.Run("CTX-06 each source in turn, with those above it absent", func(t *testing.T) {
		c := Claims{Override: 900_000, Million: true, Config: 100_000, Model: 128_000}
		for _, tt := range []struct {
			want   Size
			absent func()
		}{
			{Size{900_000, SourceOverride}, func() { c.Override = 0 }},
			{Size{1_048_576, SourceMillion}, func() { c.Million = false }},
			{Size{100_000, SourceConfig}, func() { c.Config = 0 }},
			{Size{128_000, SourceModel}, func() { c.Model = 0 }},
			{Size{200_000, SourceDefault}, func() {}},
		} {
			if got := Resolve(c); got != tt.want {
				t.Errorf("%+v: %v, want %v", c, got, tt.want)
			}
			tt.absent()
		}
	})
	for _, tt := range []struct {
		name string
		c    Claims
		want Size
	}{
		{"CTX-03 the cap makes a window smaller", Claims{Model: 200_000, Cap: 100_000}, Size{100_000, SourceCap}},
		{"a cap above the window changes nothing", Claims{Model: 64_000, Cap: 100_000}, Size{64_000, SourceModel}},
		{"the cap applies to an assumed window", Claims{Cap: 50_000}, Size{50_000, SourceCap}},
		{"CTX-04 context1m", Claims{Million: true, Model: 200_000}, Size{1_048_576, SourceMillion}},
		{"CTX-06 an override beats all", Claims{Override: 300_000, Model: 200_000, Cap: 100_000},
			Size{300_000, SourceOverride}},
		{"what the provider reported is too small for a run", Claims{Config: 64_000, Reported: 4096},
			Size{64_000, SourceConfig}},
		{"what the provider reported is smaller", Claims{Override: 300_000, Reported: 131_072},
			Size{131_072, SourceProvider}},
		{"what the provider reported is larger", Claims{Model: 100_000, Reported: 131_072}, Size{100_000, SourceModel}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Resolve(tt.c); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
	if got := (Size{200_000, SourceDefault}).String(); got != "200k tokens (assumed)" {
		t.Errorf("an assumed window is shown as %q", got)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	t.Run("CTX-08 windows around both thresholds", func(t *testing.T) {
		for _, tt := range []struct {
			tokens         int
			refused, small bool
		}{{15_999, true, false}, {16_000, false, true}, {31_999, false, true}, {32_000, false, false}} {
			w := Size{tt.tokens, SourceModel}
			if err := w.Check("x/m"); (err != nil) != tt.refused || w.Small() != tt.small {
				t.Errorf("%d tokens: error %v, small %t; want refused %t, small %t", tt.tokens, err,
					w.Small(), tt.refused, tt.small)
			}
		}
	})
	t.Run("CTX-01 the refusal names the source and the minimum", func(t *testing.T) {
		for _, s := range []Source{SourceOverride, SourceMillion, SourceConfig, SourceModel, SourceDefault,
			SourceCap, SourceProvider} {
			err := Size{8_000, s}.Check("x/m")
			var small *TooSmall
			if !errors.As(err, &small) || !strings.Contains(err.Error(), string(s)) || !strings.Contains(err.Error(), "16000") ||
				!strings.Contains(err.Error(), "8000") {
				t.Errorf("%s: %v", s, err)
			}
		}
	})
}

func TestCalibrate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		before    float64
		real      int64
		estimated int
		want      float64
	}{
		{0, 1500, 1000, 1.5},
		{1, 2000, 1000, 1.3},
		{0, 9000, 1000, 2.5},
		{0, 10, 1000, 0.5},
		{1.2, 0, 1000, 1.2},
		{1.2, 10, 0, 1.2},
	} {
		if got := Calibrate(tt.before, tt.real, tt.estimated); got < tt.want-1e-9 || got > tt.want+1e-9 {
			t.Errorf("Calibrate(%v, %d, %d) = %v, want %v", tt.before, tt.real, tt.estimated, got, tt.want)
		}
	}
	if got := Calibrated(1000, 0); got != 1000 {
		t.Errorf("without a measurement: %d", got)
	}
}

// roles returns a message for each letter: user, assistant, assistant with a call, result,
// summary.
func roles(s string) []*llm.Message {
	var out []*llm.Message
	for _, r := range s {
		m := &llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Text("u")}}
		switch r {
		case 'a':
			m.Role = llm.RoleAssistant
		case 'c':
			m.Role, m.Parts = llm.RoleAssistant, []llm.Part{{Kind: llm.PartCall, Call: &llm.ToolCall{ID: "1", Name: "x"}}}
		case 'r':
			m.Role, m.CallID = llm.RoleTool, "1"
		case 's':
			m.Parts[0].Text = "s"
		}
		out = append(out, m)
	}
	return out
}

// letters is the inverse of roles.
func letters(ms []*llm.Message) string {
	var b strings.Builder
	for _, m := range ms {
		switch {
		case m.Role == llm.RoleTool:
			b.WriteByte('r')
		case m.Role == llm.RoleAssistant && len(m.Calls()) > 0:
			b.WriteByte('c')
		case m.Role == llm.RoleAssistant:
			b.WriteByte('a')
		case m.PlainText() == opening:
			b.WriteByte('o')
		default:
			b.WriteString(m.PlainText())
		}
	}
	return b.String()
}

func TestHistory(t *testing.T) {
	t.Parallel()
	keep := func(m *llm.Message) bool { return m.PlainText() == "s" }
	for _, tt := range []struct {
		name, in string
		n        int
		want     string
	}{
		{"off", "uauaua", 0, "uauaua"},
		{"fewer", "uau", 4, "uau"},
		{"CTX-10 the newest four", "uauauau", 4, "oauau"},
		{"CTX-10 a pair stays together", "uacrruau", 4, "ocrruau"},
		{"CTX-10 the latest summary is retained", "suauauau", 4, "sauau"},
		{"CTX-10 the turn in progress is complete", "uaucrcrcrcr", 4, "ucrcrcrcr"},
		{"only a summary and the turn", "scrcrcr", 2, "scrcrcr"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := letters(History(roles(tt.in), tt.n, keep)); got != tt.want {
				t.Errorf("History(%q, %d) = %q, want %q", tt.in, tt.n, got, tt.want)
			}
		})
	}
	t.Run("CTX-10 most requests begin like the one before", func(t *testing.T) {
		all, moved := roles(strings.Repeat("ua", 200)), 0
		var first *llm.Message
		for n := 101; n <= len(all); n += 2 {
			got := History(all[:n], 40, nil)
			if got[0].PlainText() == opening {
				got = got[1:]
			}
			if len(got) > 40 {
				t.Fatalf("%d of %d messages are sent", len(got), n)
			}
			if first != nil && got[0] != first {
				moved++
			}
			first = got[0]
		}
		if moved > 30 {
			t.Errorf("the beginning moved %d times in 150 turns", moved)
		}
	})
}
