package secret

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRedactAddresses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://me:hunter2@example.org/a?b=c":                              "https://[redacted]@example.org/a?b=c",
		"git clone https://tok123@example.org/x.git":                        "git clone https://[redacted]@example.org/x.git",
		"https://k:x-oauth-basic@example.org":                               "https://[redacted]@example.org",
		"amqp://me:p@ss@host/v":                                             "amqp://[redacted]@host/v",
		"https://a.example/v1?key=abc&q=x":                                  "https://a.example/v1?key=[redacted]&q=x",
		"curl 'a.example/?q=1&access_token=abc' -o b":                       "curl 'a.example/?q=1&access_token=[redacted]' -o b",
		"https://a/cb#id_token=e.f.g&state=1":                               "https://a/cb#id_token=[redacted]&state=1",
		"https://s3.a/x?X-Amz-Credential=AK%2F1&X-Amz-Signature=0f&part=1":  "https://s3.a/x?X-Amz-Credential=[redacted]&X-Amz-Signature=[redacted]&part=1",
		"https://a/?subscription-key=1&apikey=2&APIKey=3&appid=4&sig=5":     "https://a/?subscription-key=[redacted]&apikey=[redacted]&APIKey=[redacted]&appid=[redacted]&sig=[redacted]",
		`{"url":"https://a/?x=1\u0026token=abc","m":"b@c"}`:                 `{"url":"https://a/?x=1\u0026token=[redacted]","m":"b@c"}`,
		"https://a/?user[password]=x&a=1":                                   "https://a/?user[password]=[redacted]&a=1",
		"https://a/?author=bob&design=1&monkey=2&keyword=x&q=token&sort=1":  "https://a/?author=bob&design=1&monkey=2&keyword=x&q=token&sort=1",
		"write to me@example.org; see https://example.org/@me and a.b/?v=2": "write to me@example.org; see https://example.org/@me and a.b/?v=2",
		"curl -d @x https://hooks.slack.com/services/T01/B02/zq6Uv":         "curl -d @x https://hooks.slack.com/services/[redacted]",
		"https://discord.com/api/webhooks/12/ab-cd?wait=true":               "https://discord.com/api/webhooks/[redacted]?wait=true",
		"https://me.webhook.office.com/webhookb2/1@2/IncomingWebhook/3":     "https://me.webhook.office.com/webhookb2/[redacted]",
		"https://u:p@a.example/f;jsessionid=12Mm8?part=x":                   "https://[redacted]@a.example/f;jsessionid=[redacted]",
		"key=1 token=2": "key=1 token=2",
		"":              "",
	} {
		if got := RedactAddresses(in); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
	if got := strings.Join(InAddresses("https://me:p%40ss@h/?key=a%2Fb&x=1"), " "); got != "a%2Fb a/b p%40ss p@ss" {
		t.Error(got)
	}
}

// FuzzRedactAddresses checks that JSON stays valid, and that what is redacted is not
// redacted again.
func FuzzRedactAddresses(f *testing.F) {
	f.Add("https://me:hunter2@example.org/?token=abc&x=1", "k")
	f.Fuzz(func(t *testing.T, text, other string) {
		b, err := json.Marshal(map[string]string{text: other, other: text})
		if err != nil {
			t.Skip()
		}
		got := RedactAddresses(string(b))
		if !json.Valid([]byte(got)) {
			t.Errorf("%s becomes %s", b, got)
		}
		if again := RedactAddresses(got); again != got {
			t.Errorf("%s becomes %s", got, again)
		}
	})
}
