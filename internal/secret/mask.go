package secret

import (
	"fmt"
	"regexp"
)

// looks is what looks like a secret, whoever's it is. The first group of a
// pattern is the secret; without one it is all that matches.
var looks = [...]string{
	`\bsk-[A-Za-z0-9_-]{8,}`,                                                 // OpenAI, Anthropic, OpenRouter
	`\b(?:gh[pousr]|github_pat|gsk|npm|hf|xai)_\w{16,}`,                      // GitHub, Groq, npm, Hugging Face, xAI
	`\b(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}`,                                  // Slack
	`\bAIza[A-Za-z0-9_-]{20,}`,                                               // Google
	`\bAKIA[A-Z0-9]{16}\b`,                                                   // Amazon
	`\b\d{6,12}:[A-Za-z0-9_-]{30,}`,                                          // Telegram
	`\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}`,                                   // a JSON Web Token
	`(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{12,})`,                     // a header
	`\b[A-Z][A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD)=\\?["']?([^\s"'\\]{6,})`, // a variable
	`(?i)--(?:api-?key|token|secret|password)[ =]\\?["']?([^\s"'\\]{6,})`,    // a flag
	`(?i)\\?"(?:api_?key|token|access_?token|refresh_?token|client_?secret|secret|password)\\?"\s*:\s*\\?"([^"\\]{6,})`, // a member of an object
	`://[^/\s:@]+:([^/\s:@]{4,})@`,                                           // in a URL
	`-----BEGIN [A-Z ]*PRIVATE KEY-----((?:[A-Za-z0-9+/=:,. -]|\\[nr]|\s)+)`, // a key file
}

// Masker hides in text what looks like a secret. It is for logs: what it
// changes cannot be read back.
type Masker struct{ patterns []*regexp.Regexp }

// NewMasker returns a Masker that also knows further patterns, regular
// expressions of which the first group, or all, is the secret.
func NewMasker(more ...string) (*Masker, error) {
	m := &Masker{}
	for _, s := range looks {
		m.patterns = append(m.patterns, regexp.MustCompile(s))
	}
	for _, s := range more {
		p, err := regexp.Compile(s)
		if err != nil {
			return nil, fmt.Errorf("pattern of secrets: %w", err)
		}
		m.patterns = append(m.patterns, p)
	}
	return m, nil
}

// Mask returns the line with secrets hidden.
func (m *Masker) Mask(line []byte) []byte {
	for _, p := range m.patterns {
		at := p.FindAllSubmatchIndex(line, -1)
		if at == nil {
			continue
		}
		out := make([]byte, 0, len(line))
		end := 0
		for _, i := range at {
			from, to := i[0], i[1]
			if len(i) > 3 && i[2] >= 0 {
				from, to = i[2], i[3]
			}
			out = append(out, line[end:from]...)
			out = append(out, hidden(line[from:to])...)
			end = to
		}
		line = append(out, line[end:]...)
	}
	return line
}

// hidden is what is shown of a secret: of a long one its ends, by which its
// owner knows which it is.
func hidden(s []byte) string {
	if len(s) < 18 {
		return "***"
	}
	for _, c := range s {
		if c <= ' ' || c == '\\' || c >= 0x7f { // not a single word
			return "***"
		}
	}
	return string(s[:6]) + "…" + string(s[len(s)-4:])
}
