package secret

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMask(t *testing.T) {
	m, err := NewMasker(`ticket ([a-z0-9]+)`, `badge(?:=([0-9]+))?`)
	if err != nil {
		t.Fatal(err)
	}
	const long = "abcdefghijklmnopqrstuvwxyz0123456789ABCD"
	for in, want := range map[string]string{
		"key sk-ant-" + long + " refused":          "key sk-ant…ABCD refused",
		"sk-12345678":                              "***",
		"Authorization: Bearer " + long:            "Authorization: Bearer abcdef…ABCD",
		"OPENAI_API_KEY=" + long + " run":          "OPENAI_API_KEY=abcdef…ABCD run",
		"X_TOKEN='hunter2'":                        "X_TOKEN='***'",
		"curl --token " + long:                     "curl --token abcdef…ABCD",
		`{"apiKey": "hunter22"}`:                   `{"apiKey": "***"}`,
		`{"args":"{\"password\":\"hunter22\"}"}`:   `{"args":"{\"password\":\"***\"}"}`,
		"https://me:hunter2@example.org/":          "https://[redacted]@example.org/",
		"curl -u me:hunter2 -o x":                  "curl -u me:*** -o x",
		"mysql -uroot -phunter2 shop":              "mysql -uroot -p*** shop",
		`{"c":"mysqldump -p'hunter2' shop"}`:       `{"c":"mysqldump -p'***' shop"}`,
		"mysql -u root -p shop | grep -paper":      "mysql -u root -p shop | grep -paper",
		"sshpass -p hunter2 ssh me@host":           "sshpass -p *** ssh me@host",
		"redis-cli -h db -a hunter2 get x":         "redis-cli -h db -a *** get x",
		"docker run -u 1000:1000 x":                "docker run -u 1000:1000 x",
		"ghp_" + long:                              "ghp_ab…ABCD",
		"xoxb-1234567890-abc":                      "xoxb-1…-abc",
		"123456789:" + long:                        "123456…ABCD",
		"ticket 4711":                              "ticket ***",
		"badge=12 badge":                           "badge=*** ***", // the group did not take part
		"A_KEY=12345678901234567":                  "A_KEY=***",
		"A_KEY=123456789012345678":                 "A_KEY=123456…5678",
		"https://me:pässword-of-many-letters@a/":   "https://[redacted]@a/",
		"https://me:pass\\word-of-many-letters@a/": "https://[redacted]@a/", // it may be an escape in JSON
		"-----BEGIN PRIVATE KEY-----MIIE-----END":  "-----BEGIN PRIVATE KEY-----***",

		`{"sessionKey":"agent:main:main","key":"m7"}`: `{"sessionKey":"agent:main:main","key":"m7"}`,
		"the token mismatch of run 12345678:9":        "the token mismatch of run 12345678:9",
		"risk-based masking of tokens=5":              "risk-based masking of tokens=5",
	} {
		if got := string(m.Mask([]byte(in))); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
	// Each marker is needed: without it, some lines would not be matched.
	for _, in := range []string{
		"ghp_…", "gho_…", "ghu_…", "ghs_…", "ghr_…", "github_pat_…", "gsk_…", "npm_…", "hf_…", "xai_…", "sk-…", "xoxp-…",
		"xapp-…", "AIza…", "AKIA1234567890123456", "12345678:…", "eyJ….….…",
		"Bearer …", "BASIC …", "-----BEGIN PRIVATE KEY-----…", "A_KEY=…", "A_TOKEN=…", "A_SECRET=…", "A_PASSWORD=…",
		"--api-key …", "--APIKEY=…", "--token …", "--secret=…", "--password …",
		`"apiKey":"…"`, `"api_key":"…"`, `"token":"…"`, `"access_token":"…"`, `"refreshToken":"…"`, `"client_secret":"…"`,
		`"secret":"…"`, `"Password":"…"`, "amqp://me:…@host",
	} {
		in = strings.ReplaceAll(in, "…", long)
		if got := string(m.Mask([]byte("a " + in + " b"))); strings.Contains(got, "mnopqrstuv") ||
			strings.Contains(got, "56789012345") {
			t.Errorf("%s is not masked: %s", in, got)
		}
	}
	if _, err := NewMasker("("); err == nil {
		t.Error("NewMasker accepted an invalid pattern")
	}
}

// FuzzMask checks that a key is always hidden and that JSON lines stay valid.
func FuzzMask(f *testing.F) {
	m, err := NewMasker()
	if err != nil {
		f.Fatal(err)
	}
	every := &Masker{} // matches every pattern on every line
	for _, p := range m.patterns {
		every.patterns = append(every.patterns, pattern{Regexp: p.Regexp})
	}
	const key = "sk-canary0123456789abcdefghij"
	for _, s := range []string{"", "key=", "Bearer ", "--token ", "{\"token\":\"", "://a:", "\xff",
		"-----BEGIN PRIVATE KEY-----", "X_KEY=", "BASIC ", "ghp_", "xoxb-", "AIza", "AKIA", "123456:", "eyJ",
		"\"api_key\": \"", "ba\u017fic "} {
		f.Add(s, " x")
		f.Add(s, "abcdefgh.abcdefgh.ABCDEFGH0123456789@")
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		if got := string(m.Mask([]byte(before + " " + key + " " + after))); strings.Contains(got, key) {
			t.Fatalf("%q", got)
		}
		for _, line := range []string{before + after, before + key + after, before + " " + after +
			"0123456789abcdefghijklmnopqrstuv"} {
			if got, want := string(m.Mask([]byte(line))), string(every.Mask([]byte(line))); got != want {
				t.Fatalf("%q: %q, want %q", line, got, want)
			}
		}
		line, err := json.Marshal(map[string]string{"msg": before + " " + key, "a": after})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Mask(line); !json.Valid(got) {
			t.Fatalf("%s became invalid JSON: %s", line, got)
		}
	})
}

func BenchmarkMask(b *testing.B) {
	m, err := NewMasker()
	if err != nil {
		b.Fatal(err)
	}
	line := []byte(
		`{"time":"2026-03-01T12:00:00.123456789Z","level":"INFO","msg":"tool call","principal":"owner","agent":"main",` +
			`"session":"agent:main:main","run":"6f1c0b7e-0d3c-4c58-9d43-6c0b8a1d2e3f","tool":"read","args":"{\\"path\\":\\"main.go\\"}",` +
			`"decision":"allowed","rule":"default","outcome":"ok","took":123456}`)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		m.Mask(line)
	}
}
