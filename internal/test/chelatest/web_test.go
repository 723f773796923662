//go:build unix

package chelatest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestWeb(t *testing.T) {
	t.Run("WF-03 a page of this machine is rejected, and the turn continues", func(t *testing.T) {
		hits := 0
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits++ }))
		defer s.Close()
		c := Start(t, Options{Model: uses()}).Client()
		if got := c.Ask("main", `web_fetch {"url":"`+s.URL+`"}`).Text; !strings.Contains(got, "not allowed") || hits > 0 {
			t.Errorf("%q after %d requests", got, hits)
		}
		if got := c.Ask("main", `web_search {"query":"crabs"}`).Text; !strings.Contains(got,
			"chela config set tools.web.search") {
			t.Errorf("WSV-03: %q", got)
		}
	})
	t.Run("WF-05 a page of an allowed host is read and marked as external", func(t *testing.T) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "<title>T</title><p>crabs walk")
		}))
		defer s.Close()
		c := Start(t,
			Options{Model: uses(),
				Config: Config{
					"tools": json.RawMessage(`{"web": {"fetch": {"ssrfPolicy": {"allowedHostnames": ["127.0.0.1"]}}}}`)}}).Client()
		got := c.Ask("main", `web_fetch {"url":"`+s.URL+`"}`).Text
		if !strings.Contains(got, "crabs walk") || !strings.Contains(got, "<untrusted-content ") {
			t.Errorf("%q", got)
		}
	})
}
