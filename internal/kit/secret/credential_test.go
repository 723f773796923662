package secret

import (
	"regexp"
	"strings"
	"testing"
)

func TestRedactCredentials(t *testing.T) {
	t.Parallel()
	const tail = "abcdefghijklmnopqrstuvwxyz0123456789ABCD"
	for _, s := range []string{
		"sk-12345678", "SK_12345678", "pk-live-1234", "rk_12345678", "key-12345678", "pat_12345678", "ghp_12345678",
		"ghu_12345678", "github_pat_12345678",
		"glpat-12345678", "gsk_12345678", "npm_12345678", "hf_12345678", "xai-12345678", "xoxb-12345678",
		"xapp-1-123456", "AKIA123456789012",
		"AIza" + tail, "123456:" + tail, "eyJabcdefgh.x", "Bearer 123456", "basic dXNlcg==",
		"-----BEGIN RSA PRIVATE KEY-----",
	} {
		if got := RedactCredentials("a " + s + " b"); !ContainsCredential(s) || strings.Contains(got, s) ||
			!strings.HasPrefix(got, "a "+Redacted) {
			t.Errorf("RedactCredentials(%q) = %q", s, got)
		}
	}
	for _, s := range []string{"", "agent:main:main", "risk-based", "a key of mine", "sk-123", "bearer",
		"https://host/v1", "12:30"} {
		if got := RedactCredentials(s); got != s || ContainsCredential(s) {
			t.Errorf("RedactCredentials(%q) = %q", s, got)
		}
	}
}

// TestFormats checks that the two expressions of a format agree: what is hidden
// in logs is also redacted elsewhere.
func TestFormats(t *testing.T) {
	t.Parallel()
	for _, l := range formats {
		wide := regexp.MustCompile("(?i)" + l.wide)
		sure := regexp.MustCompile(l.strict)
		found := false
		for _, s := range []string{
			"sk-12345678", "ghs_1234567890123456", "npm_1234567890123456", "xapp-1234567890", "AIza12345678901234567890",
			"AKIA1234567890123456",
			"123456:123456789012345678901234567890", "eyJ12345678.12345678.12345678", "Basic 123456789012",
			"-----BEGIN PRIVATE KEY-----a",
		} {
			if sure.MatchString(s) {
				found = true
				if !wide.MatchString(s) {
					t.Errorf("%s is hidden in logs and not redacted elsewhere", s)
				}
			}
		}
		if !found {
			t.Errorf("no example matches %s", l.strict)
		}
	}
}
