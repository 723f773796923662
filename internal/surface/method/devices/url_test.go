package devices

import "testing"

// FuzzGatewayURL checks that devices only get WebSocket addresses without
// anything that could be a credential.
func FuzzGatewayURL(f *testing.F) {
	for _, s := range []string{"ws://a", "https://a/b/", "wss://u:p@a", "ws://a?x#y", "http:///x", "WS://A", "ws://[::1]:1", "httpx://a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := gatewayURL(s)
		if err != nil {
			return
		}
		again, err := gatewayURL(u.String())
		if err != nil || again.Scheme != u.Scheme || again.Host != u.Host || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			t.Errorf("%q is %v, and that %v, %v", s, u, again, err)
		}
	})
}
