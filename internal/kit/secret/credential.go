package secret

import (
	"regexp"
	"strings"
	"sync"
)

// credentialFormat describes one kind of credential by regular expressions. The
// secret is the first group of an expression, or the whole match if it has no
// group.
type credentialFormat struct {
	strict  string // for logs, which contain much text that resembles a credential
	wide    string // for text that is shown to others: any possible credential; case-insensitive
	markers string // lower-case substrings, # for a digit; every match of strict contains one: see pattern
}

// formats are the formats of well-known services.
var formats = [...]credentialFormat{
	// OpenAI, Anthropic, OpenRouter, Stripe
	{`\bsk-[A-Za-z0-9_-]{8,}`, `\b(?:sk|pk|rk|key|pat)[-_][A-Za-z0-9_-]{8,}`, "sk-"},
	// GitHub, GitLab, Groq, npm, Hugging Face, xAI
	{`\b(?:gh[pousr]|github_pat|gsk|npm|hf|xai)_\w{16,}`,
		`\b(?:gh[pousr]|github_pat|glpat|gsk|npm|hf|xai)[-_][A-Za-z0-9_-]{8,}`,
		"ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ gsk_ npm_ hf_ xai_"},
	// Slack
	{`\b(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}`, `\b(?:xox[a-z]|xapp)[-_][A-Za-z0-9_-]{8,}`, "xox xapp-"},
	// Google
	{`\bAIza[A-Za-z0-9_-]{20,}`, `\bAIza[A-Za-z0-9_-]{20,}`, "aiza"},
	// Amazon
	{`\bAKIA[A-Z0-9]{16}\b`, `\bAKIA[A-Z0-9]{12,}`, "akia"},
	// Telegram
	{`\b\d{6,12}:[A-Za-z0-9_-]{30,}`, `\b\d{6,}:[A-Za-z0-9_-]{20,}`, "######:"},
	// a JSON Web Token
	{`\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}`, `\bey[A-Za-z0-9_-]{9,}\.[A-Za-z0-9_.-]+`, "eyj"},
	// a header
	{`(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{12,})`, `\b(?:bearer|basic)\s+\S{6,}`, "bearer basic"},
	// a key file
	{`-----BEGIN [A-Z ]*PRIVATE KEY-----((?:[A-Za-z0-9+/=:,. -]|\\[nr]|\s)+)`, `-----BEGIN[^-]*PRIVATE KEY`, "-----begin"},
}

// named are secrets that follow a telling name, in logs.
var named = [...]credentialFormat{
	// a variable
	{strict: `\b[A-Z][A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD)=\\?["']?([^\s"'\\]{6,})`,
		markers: "key= token= secret= password="},
	// a flag
	{strict: `(?i)--(?:api-?key|token|secret|password)[ =]\\?["']?([^\s"'\\]{6,})`,
		markers: "--api --token --secret --password"},
	{strict: `(?i)\\?"(?:api_?key|token|access_?token|refresh_?token|client_?secret|secret|password)\\?"\s*:\s*\\?"([^"\\]{6,})`,
		markers: "apikey api_key token secret password"}, // a member of an object
	{strict: `\b(?:mysql|mariadb)[a-z-]*(?:\s[^|;&\n]*?)?\s-p\\?["']?([^\s"'\\]+)`, markers: "mysql mariadb"},
	{strict: `\b(?:sshpass\s+-p|redis-cli(?:\s[^|;&\n]*?)?\s-a)\s*\\?["']?([^\s"'\\]+)`, markers: "sshpass redis-cli"},
	{strict: `\s(?:-u|--user)[ =]\\?["']?[^\s:"'\\]+:([^\s"'\\]*[^\s"'\\0-9][^\s"'\\]*)`, markers: "-u --user"}, // of curl
}

// wide matches possible credentials. It is compiled on first use, because most
// processes never need it.
var wide = sync.OnceValue(func() *regexp.Regexp {
	all := make([]string, len(formats))
	for i, l := range formats {
		all[i] = l.wide
	}
	return regexp.MustCompile("(?i)" + strings.Join(all, "|"))
})

// ContainsCredential reports whether s contains a possible credential.
func ContainsCredential(s string) bool { return wide().MatchString(s) }

// RedactCredentials replaces possible credentials in s by [Redacted].
func RedactCredentials(s string) string { return wide().ReplaceAllString(s, Redacted) }
