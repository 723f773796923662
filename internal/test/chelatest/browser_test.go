package chelatest_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/test/chelatest"
	"github.com/chela-ai/chela/wire"
)

// TestBrowser opens a page in a conversation and as a client.
func TestBrowser(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "chromium")
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<title>Tea</title><p>Green tea costs 4.20 EUR.</p><button>Order</button>"))
	}))
	defer site.Close()
	g := chelatest.Start(t,
		chelatest.Options{
			Config: chelatest.Config{
				"browser": json.RawMessage(`{"noSandbox":true,"headless":true,"ssrfPolicy":{"allowedHostnames":["127.0.0.1"]}}`)}})
	c := g.Client()
	request := func(method, path string, query map[string]string, body any) (out map[string]any) {
		t.Helper()
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Call(t.Context(), wire.MethodBrowserRequest,
			wire.BrowserRequest{Method: method, Path: path, Query: query, Body: raw}, &out); err != nil {
			t.Fatal(method, path, err)
		}
		return out
	}
	if s := request("GET", "/", nil, nil); s["running"] != false || s["profile"] != "chela" {
		t.Errorf("before the first use: %v", s)
	}
	opened := request("POST", "/tabs/open", nil, map[string]string{"url": site.URL})
	if opened["title"] != "Tea" || opened["tabId"] != "t1" {
		t.Errorf("opened %v", opened)
	}
	shot := request("GET", "/snapshot", map[string]string{"format": "ai", "targetId": opened["targetId"].(string)}, nil)
	if text, _ := shot["snapshot"].(string); shot["format"] != "ai" ||
		!strings.Contains(text, "Green tea costs 4.20 EUR.") || !strings.Contains(text, `button "Order" [ref=`) {
		t.Errorf("snapshot %v", shot)
	}
	if err := c.Call(t.Context(), wire.MethodBrowserRequest, wire.BrowserRequest{Method: "POST", Path: "/cookies/set"},
		nil); err == nil || !strings.Contains(err.Error(), "not supported") {
		t.Error(err)
	}
	if s := request("POST", "/stop", nil, nil); s["running"] != false {
		t.Errorf("after stop: %v", s)
	}
}
