package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	core "github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/plugin/tool/mcp"
)

// The client offers nothing, and refuses requests of servers.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var said []string
		m := &memory{server: func(sandbox.Plan) (*sdk.Server, error) {
			s := good()
			s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
				return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
					text, _ := json.Marshal(r.GetParams())
					mu.Lock()
					said = append(said, method+" "+string(text))
					mu.Unlock()
					return next(ctx, method, r)
				}
			})
			sdk.AddTool(s, &sdk.Tool{Name: "ask"},
				func(ctx context.Context, r *sdk.CallToolRequest, _ any) (*sdk.CallToolResult, any, error) {
					_, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "your password?"})
					return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "answer: " + err.Error()}}}, nil, nil
				})
			return s, nil
		}}
		servers := map[string]core.Server{"srv": one}
		p := memoryPool(t, m, mcp.Options{Version: "9.9"})
		defer closePool(t, p)
		cat, err := p.Probe(t.Context(), "srv", one)
		if err != nil || len(cat.Tools) != 12 || cat.Server != "good 1.2" {
			t.Errorf("%+v, %v", cat, err)
		}
		if len(p.Status()) != 0 || m.running.Load() != 0 {
			t.Error("a trial is left")
		}
		p.Use(servers, 0)
		synctest.Wait()
		text, err := call(t, find(t, p, servers, "srv__ask"), "")
		if err != nil || !strings.Contains(text, "answer: ") {
			t.Errorf("%s, %v", text, err)
		}
		all := strings.Join(said, "\n")
		for _, word := range []string{"roots", "sampling", "elicitation"} {
			if strings.Contains(all, word) {
				t.Errorf("the client offers %s: %s", word, all)
			}
		}
		if !strings.Contains(all, "9.9") {
			t.Errorf("no version: %s", all)
		}
	})
}
