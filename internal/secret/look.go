package secret

import (
	"regexp"
	"strings"
	"sync"
)

// look is how one kind of credential looks. The first group of an expression
// is the secret; without one it is all that matches.
type look struct {
	sure  string // in a log, much of which is like a credential and is none
	wide  string // in what is shown to others: whatever may be one; case makes no difference
	marks string // in lower case, # for a digit, of which whatever is sure holds one: see pattern
}

// looks is what services give out.
var looks = [...]look{
	{`\bsk-[A-Za-z0-9_-]{8,}`, `\b(?:sk|pk|rk|key|pat)[-_][A-Za-z0-9_-]{8,}`, "sk-"},                                                                                                         // OpenAI, Anthropic, OpenRouter, Stripe
	{`\b(?:gh[pousr]|github_pat|gsk|npm|hf|xai)_\w{16,}`, `\b(?:gh[pousr]|github_pat|glpat|gsk|npm|hf|xai)[-_][A-Za-z0-9_-]{8,}`, "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ gsk_ npm_ hf_ xai_"}, // GitHub, GitLab, Groq, npm, Hugging Face, xAI
	{`\b(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}`, `\b(?:xox[a-z]|xapp)[-_][A-Za-z0-9_-]{8,}`, "xox xapp-"},                                                                                       // Slack
	{`\bAIza[A-Za-z0-9_-]{20,}`, `\bAIza[A-Za-z0-9_-]{20,}`, "aiza"},                                                                                                                         // Google
	{`\bAKIA[A-Z0-9]{16}\b`, `\bAKIA[A-Z0-9]{12,}`, "akia"},                                                                                                                                  // Amazon
	{`\b\d{6,12}:[A-Za-z0-9_-]{30,}`, `\b\d{6,}:[A-Za-z0-9_-]{20,}`, "######:"},                                                                                                              // Telegram
	{`\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}`, `\bey[A-Za-z0-9_-]{9,}\.[A-Za-z0-9_.-]+`, "eyj"},                                                                                                // a JSON Web Token
	{`(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{12,})`, `\b(?:bearer|basic)\s+\S{6,}`, "bearer basic"},                                                                                    // a header
	{`-----BEGIN [A-Z ]*PRIVATE KEY-----((?:[A-Za-z0-9+/=:,. -]|\\[nr]|\s)+)`, `-----BEGIN[^-]*PRIVATE KEY`, "-----begin"},                                                                   // a key file
}

// named is a secret behind a name that tells of one, in a log.
var named = [...]look{
	{sure: `\b[A-Z][A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD)=\\?["']?([^\s"'\\]{6,})`, marks: "key= token= secret= password="},  // a variable
	{sure: `(?i)--(?:api-?key|token|secret|password)[ =]\\?["']?([^\s"'\\]{6,})`, marks: "--api --token --secret --password"}, // a flag
	{sure: `(?i)\\?"(?:api_?key|token|access_?token|refresh_?token|client_?secret|secret|password)\\?"\s*:\s*\\?"([^"\\]{6,})`,
		marks: "apikey api_key token secret password"}, // a member of an object
	{sure: `://[^/\s:@]+:([^/\s:@]{4,})@`, marks: "://"}, // in a URL
}

// wide matches what may be a credential. It is compiled when something is
// shown first: most processes never do.
var wide = sync.OnceValue(func() *regexp.Regexp {
	all := make([]string, len(looks))
	for i, l := range looks {
		all[i] = l.wide
	}
	return regexp.MustCompile("(?i)" + strings.Join(all, "|"))
})

// Suspect reports whether a text has what may be a credential.
func Suspect(s string) bool { return wide().MatchString(s) }

// Concealed returns a text for people without what may be a credential.
func Concealed(s string) string { return wide().ReplaceAllString(s, Redacted) }
