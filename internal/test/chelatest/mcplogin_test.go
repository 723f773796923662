package chelatest

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/plugin/tool/mcp/oauth/oauthtest"
	"github.com/chela-ai/chela/wire"
)

// A server of the configuration that asks for a login.
func TestMCPLogin(t *testing.T) {
	t.Parallel()
	type in struct {
		Text string `json:"text"`
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "say"},
		func(_ context.Context, _ *sdk.CallToolRequest, a in) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "notes says " + a.Text}}}, nil, nil
		})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
		&sdk.StreamableHTTPOptions{JSONResponse: true, Stateless: true})
	service := oauthtest.New(t, handler, oauthtest.Behaviour{Life: time.Hour})
	g, c := configuredWith(t, `{"commands": {"mcp": true}, "mcp": {"servers": {"srv": {"url": "`+service.URL()+
		`", "transport": "streamable-http"}}}}`,
		Options{Model: uses(), Listen: &endpoint.Listen{Port: -1}})
	state := func() wire.MCPServer {
		var s wire.MCPStatus
		c.must(wire.MethodMCPStatus, wire.None{}, &s)
		return s.Servers[0]
	}
	logIn := func() {
		t.Helper()
		var b wire.MCPLoginStarted
		c.must(wire.MethodMCPLoginStart, wire.MCPLoginStart{Name: "srv", Redirect: "http://127.0.0.1:1/callback"}, &b)
		var f wire.MCPLoginFinished
		c.must(wire.MethodMCPLoginEnd, wire.MCPLoginFinish{Name: "srv", Answer: service.Agree(b.URL)}, &f)
		if f.Login.State != "in" || f.Login.Issuer != service.Issuer() || !f.Login.Renews {
			t.Errorf("%+v", f)
		}
	}
	settles(t, "MCP-05 the state without a login", "needs-auth", func() string { return state().State })
	err := c.Call(t.Context(), wire.MethodMCPProbe, wire.MCPProbe{Name: "srv"}, nil)
	if err == nil || !strings.Contains(err.Error(), "log in: chela mcp login srv") {
		t.Errorf("probe: %v", err)
	}
	if err := c.Call(t.Context(), wire.MethodMCPLoginStart, wire.MCPLoginStart{Name: "other"}, nil); err == nil {
		t.Error("a login at a server that does not exist")
	}
	for _, issuer := range []string{"https://169.254.169.254", "https://[fe80::1]"} {
		service.Change(func(b *oauthtest.Behaviour) {
			b.Resource = func(m map[string]any) { m["authorization_servers"] = []string{issuer} }
		})
		err := c.Call(t.Context(), wire.MethodMCPLoginStart,
			wire.MCPLoginStart{Name: "srv", Redirect: "http://127.0.0.1:1/callback"}, nil)
		if err == nil || !strings.Contains(err.Error(), "is not allowed") {
			t.Errorf("a service at %s: %v", issuer, err)
		}
	}
	service.Change(func(b *oauthtest.Behaviour) { b.Resource = nil })
	logIn()
	eventually(t, "tools", []string{"bundle-mcp:srv__say"}, c.pluginTools)
	if got := c.Ask("main", `srv__say {"text": "hi"}`).Text; !strings.Contains(got, "notes says hi") {
		t.Errorf("answer %s", got)
	}
	service.Revoke()
	for range 2 {
		if got := c.Ask("main", `srv__say {"text": "hi"}`).Text; !strings.Contains(got, "log in: chela mcp login srv") {
			t.Errorf("MCP-05 a call after the login has ended: %s", got)
		}
	}
	if got := state(); got.State != "needs-auth" || got.Login == nil || got.Login.State != "lost" {
		t.Errorf("%+v", got)
	}
	var h wire.History
	c.must(wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"}, &h)
	text := string(mustJSON(t, h))
	if n := strings.Count(text, "Log in again with: chela mcp login srv"); n != 1 {
		t.Errorf("the owner is told %d times: %s", n, text)
	}
	logIn()
	if got := c.Ask("main", `srv__say {"text": "again"}`).Text; !strings.Contains(got, "notes says again") {
		t.Errorf("answer %s", got)
	}
	files, err := filepath.Glob(filepath.Join(g.Dir, "credentials", "mcp", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	stored, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stored), `"access":"`)
	token, _, _ := strings.Cut(rest, `"`)
	if !strings.HasPrefix(token, "access-") {
		t.Fatalf("no token in %s", stored)
	}
	if got := c.Ask("main", `srv__say {"text": "`+token+`"}`).Text; strings.Contains(got, token) {
		t.Errorf("a token is shown: %s", got)
	}
	var out wire.MCPLoggedOut
	c.must(wire.MethodMCPLogout, wire.MCPLogout{Name: "srv"}, &out)
	if !out.Removed || out.Problem != "" || service.Counts().Revoked != 2 {
		t.Errorf("%+v, %+v", out, service.Counts())
	}
	if files, _ = filepath.Glob(filepath.Join(g.Dir, "credentials", "mcp", "*")); len(files) != 0 {
		t.Errorf("left: %q", files)
	}
}
