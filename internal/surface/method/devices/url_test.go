package devices

import "testing"

// FuzzGatewayURL checks that devices only get WebSocket addresses without
// anything that could be a credential.
func FuzzGatewayURL(f *testing.F) {
	for _, s := range []string{"ws://a", "https://a/b/", "wss://u:p@a", "ws://a?x#y", "http:///x", "WS://A",
		"ws://[::1]:1", "httpx://a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := gatewayURL(s)
		if err != nil {
			return
		}
		again, err := gatewayURL(u.String())
		if err != nil || again.Scheme != u.Scheme || again.Host != u.Host || u.User != nil ||
			u.RawQuery != "" || u.Fragment != "" {
			t.Errorf("%q is %v, and that %v, %v", s, u, again, err)
		}
	})
}

// TestConfidential checks names that only contain the letters of a local one.
func TestConfidential(t *testing.T) {
	for s, want := range map[string]bool{
		"wss://gateway.example":   true,
		"ws://localhost:1":        true,
		"ws://127.0.0.1":          true,
		"ws://127.1.2.3:1":        true,
		"ws://[::1]:1":            true,
		"https://gateway.example": true,
		"ws://evillocalhost":      false,
		"ws://localhost.example":  false,
		"ws://127.0.0.1.example":  false,
		"ws://10.0.0.1":           false,

		"ws://[::2]":             false,
		"http://gateway.example": false,
	} {
		u, err := gatewayURL(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := confidential(u); got != want {
			t.Errorf("%s: %v, want %v", s, got, want)
		}
	}
}
