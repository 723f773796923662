// Package browser implements the method with which a person uses the browsers of the
// gateway from the command line.
package browser

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Options configures the method.
type Options struct {
	// Do carries out an action with the arguments of the tool browser.
	Do func(ctx context.Context, args json.RawMessage) (map[string]any, error)
}

// Methods returns the method.
func Methods(o Options) []rpc.Method {
	return []rpc.Method{rpc.New(wire.MethodBrowserRequest, wire.RoleOperator, chela.ScopeAdmin, o.request).StartsWork()}
}

// actions are the actions of the paths, by method and path.
var actions = map[string]string{
	"GET /":               "status",
	"GET /profiles":       "profiles",
	"GET /tabs":           "tabs",
	"GET /snapshot":       "snapshot",
	"GET /console":        "console",
	"POST /start":         "start",
	"POST /stop":          "stop",
	"POST /reset-profile": "resetprofile",
	"POST /tabs/open":     "open",

	"POST /tabs/focus":   "focus",
	"POST /navigate":     "navigate",
	"POST /screenshot":   "screenshot",
	"POST /act":          "act",
	"POST /pdf":          "pdf",
	"POST /hooks/dialog": "dialog",

	"POST /hooks/file-chooser": "upload",
	"POST /download":           "download",
	"POST /wait/download":      "waitfordownload",
}

func (o Options) request(ctx context.Context, p rpc.Peer, in wire.BrowserRequest) (map[string]any, error) {
	args, err := arguments(in)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, rpc.Invalid("at /body: %v", err)
	}
	p.Yield()
	return o.Do(ctx, raw)
}

// arguments returns the arguments of the tool for a request.
func arguments(in wire.BrowserRequest) (map[string]any, error) {
	args := map[string]any{}
	if len(in.Body) > 0 && string(in.Body) != "null" {
		if err := json.Unmarshal(in.Body, &args); err != nil || args == nil {
			return nil, rpc.Invalid("at /body: must be an object")
		}
	}
	for name, value := range in.Query {
		args[name] = typed(value)
	}
	if f, ok := args["format"]; ok { // of a snapshot
		delete(args, "format")
		args["snapshotFormat"] = f
	}
	if in.TimeoutMs > 0 && args["timeoutMs"] == nil {
		args["timeoutMs"] = in.TimeoutMs
	}
	method, path := strings.ToUpper(in.Method), "/"+strings.Trim(in.Path, "/")
	id, isTab := strings.CutPrefix(path, "/tabs/")
	switch action := actions[method+" "+path]; {
	case method == "POST" && path == "/tool":
	case action != "":
		args["action"] = action
	case method == "DELETE" && isTab:
		id, err := url.PathUnescape(id)
		if err != nil {
			return nil, rpc.Invalid("at /path: %v", err)
		}
		args = maps.Clone(args)
		args["action"], args["targetId"] = "close", id
	default:
		return nil, rpc.Invalid("%s %s is not supported by this version; see chela browser --help", method, path)
	}
	for name, value := range args { // OpenClaw's client sends null for what is not set
		if value == nil {
			delete(args, name)
		}
	}
	return args, nil
}

// typed returns the value of a query, which is always text there.
func typed(s string) any {
	if b, err := strconv.ParseBool(s); err == nil && len(s) > 1 {
		return b
	}
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return s
}
