package methods

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/wire"
)

// Chat answers a slash command about the gateway for the principal of ctx. It calls the
// methods that other clients call, with the same rights.
func (g *Gateway) Chat(ctx context.Context, name, args string, key chela.SessionKey) (string, error) {
	switch name {
	case "mcp":
		return g.chatServers(ctx)
	case "plugins":
		return g.chatPlugins(ctx, args)
	case "tasks":
		return g.chatTasks(ctx, key)
	case "diagnostics":
		return g.chatDiagnostics(), nil
	}
	return "", fmt.Errorf("unknown command: %s", name)
}

// call calls a method for a slash command and decodes its result.
func (g *Gateway) call(ctx context.Context, method string, params, into any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	res, err := g.set.Call(ctx, wire.RoleOperator, nil, method, raw)
	if err != nil {
		return err
	}
	if raw, err = json.Marshal(res); err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

func (g *Gateway) chatServers(ctx context.Context) (string, error) {
	var s wire.MCPStatus
	if err := g.call(ctx, wire.MethodMCPStatus, struct{}{}, &s); err != nil {
		return "", err
	}
	if len(s.Servers) == 0 {
		return "No MCP servers are configured.", nil
	}
	lines := []string{"MCP servers:"}
	for _, m := range s.Servers {
		line := fmt.Sprintf("%s: %s, %s", m.Name, m.State, humanize.Many(len(m.Tools), "tool"))
		if !m.Enabled {
			line = m.Name + ": disabled"
		}
		if m.Error != "" {
			line += ": " + m.Error
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n- "), nil
}

func (g *Gateway) chatPlugins(ctx context.Context, args string) (string, error) {
	words := strings.Fields(args)
	switch {
	case len(words) == 0 || len(words) == 1 && words[0] == "list":
	case len(words) == 2 && (words[0] == "enable" || words[0] == "disable"):
		var c wire.PluginChanged
		if err := g.call(ctx, wire.MethodPluginsSetEnabled,
			wire.PluginsSetEnabled{ID: words[1], Enabled: words[0] == "enable"}, &c); err != nil {
			return "", err
		}
		return strings.Join(append([]string{words[1] + " is " + words[0] + "d."}, c.Warnings...), "\n"), nil
	default:
		return "Usage: /plugins list, enable <id> or disable <id>", nil
	}
	var l wire.PluginsList
	if err := g.call(ctx, wire.MethodPluginsList, struct{}{}, &l); err != nil {
		return "", err
	}
	if len(l.Plugins) == 0 {
		return "No plug-ins are installed.", nil
	}
	lines := []string{"Plug-ins:"}
	for _, p := range l.Plugins {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s: %s", p.ID, p.Version, p.State)))
	}
	return strings.Join(lines, "\n- "), nil
}

func (g *Gateway) chatTasks(ctx context.Context, key chela.SessionKey) (string, error) {
	var l wire.TasksPage
	if err := g.call(ctx, wire.MethodTasksList, wire.TasksList{SessionKey: string(key), Limit: 20}, &l); err != nil {
		return "", err
	}
	if len(l.Tasks) == 0 {
		return "This session has no tasks.", nil
	}
	lines := []string{"Tasks:"}
	for _, t := range l.Tasks {
		lines = append(lines, fmt.Sprintf("%s, %s: %s", t.Status, t.Kind, cmp.Or(t.Title, t.ID)))
	}
	return strings.Join(lines, "\n- "), nil
}

// chatDiagnostics describes this process.
func (g *Gateway) chatDiagnostics() string {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	lines := []string{
		fmt.Sprintf("Chela %s, %s on %s/%s, up %s", g.o.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH,
			humanize.Span(time.Since(g.o.Started))),
		fmt.Sprintf("Memory: %s of heap, %s", humanize.Bytes(int64(m.HeapAlloc)),
			humanize.Many(runtime.NumGoroutine(), "goroutine")),
		"Database: " + g.o.Database,
	}
	states := g.o.channelStates()
	for _, name := range slices.Sorted(maps.Keys(states)) {
		c, state := states[name], "running"
		if !c.Running {
			state = "not running"
		}
		if c.Error != nil {
			state += ": " + *c.Error
		}
		lines = append(lines, "Channel "+name+": "+state)
	}
	lines = append(lines, "Run `chela doctor` for a complete check.")
	return strings.Join(lines, "\n- ")
}
