// Package status implements the tool session_status, which reports the state
// and usage of a session.
package status

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Status is the state of a session. Zero fields are unknown and omitted.
type Status struct {
	Model     string  // "provider/model"
	Context   int     // tokens in the last request
	Window    int     // size of the context window in tokens
	Input     int64   // input tokens of the session, including cached ones
	Output    int64   // output tokens of the session
	Cost      float64 // of the session
	Currency  string  // of Cost; "": USD
	Session   chela.SessionKey
	SessionID string
	Queue     string        // mode
	Uptime    time.Duration // of the gateway
	Version   string        // of Chela
}

// Options configure the tool.
type Options struct {
	// Status returns the state of a session.
	Status func(ctx context.Context, key chela.SessionKey) (Status, error)
	// Location is the person's time zone; nil: the machine's.
	Location *time.Location
}

//go:embed status.md
var description string

// New returns the tool.
func New(o Options) tool.Tool {
	if o.Location == nil {
		o.Location = time.Local
	}
	return statusTool{o}
}

type statusTool struct{ Options }

func (t statusTool) Spec() tool.Spec {
	return tool.Spec{
		Name:        "session_status",
		Label:       "Session status",
		Description: description,
		Effect:      tool.Reads,
		Groups:      []string{"group:sessions", tool.Reading},
		Profiles:    []string{"minimal", "messaging"},
		Sandboxed:   tool.Inside,
		Parallel:    true,
		Volatile:    []string{"time"},
		Aliases:     map[string]string{"session": "sessionKey"},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"sessionKey":{"type":"string"}},
			"additionalProperties":false}`),
	}
}

func (t statusTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	args, err := tool.Decode[struct {
		Session string `json:"sessionKey"`
	}](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	switch args.Session {
	case "", "current", string(c.Session):
	default:
		return tool.Result{}, errors.New("session_status reports on its own session only")
	}
	s := Status{Session: c.Session}
	if t.Status != nil {
		var err error
		if s, err = t.Status(ctx, c.Session); err != nil {
			return tool.Result{}, fmt.Errorf("session status: %w", err)
		}
	}
	s.Session = cmp.Or(s.Session, c.Session)
	now := time.Now().In(t.Location)
	return tool.Detailed(s.text(now, c),
		map[string]any{"session": s.Session, "model": s.Model, "time": now.Format(time.RFC3339)}), nil
}

// text returns a line for each known field.
func (s Status) text(now time.Time, c tool.Call) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%s: %s\n", name, fmt.Sprintf(format, args...))
	}
	zone := now.Location().String()
	if now.Location() == time.Local { // "Local" is not the name of a zone
		zone, _ = now.Zone()
	}
	line("Time", "%s (%s)", now.Format("Monday, 2 January 2006, 15:04:05 -07:00"), zone)
	if s.Model != "" {
		line("Model", "%s", s.Model)
	}
	switch {
	case s.Window > 0:
		line("Context", "%d of %d tokens (%d%%)", s.Context, s.Window, s.Context*100/s.Window)
	case s.Context > 0:
		line("Context", "%d tokens", s.Context)
	}
	if s.Input+s.Output > 0 {
		line("Tokens", "%d in, %d out", s.Input, s.Output)
	}
	if s.Cost > 0 {
		line("Cost", "%.4f %s", s.Cost, cmp.Or(s.Currency, "USD"))
	}
	line("Session", "%s", s.Session)
	if s.SessionID != "" {
		line("Session id", "%s", s.SessionID)
	}
	line("Workspace", "%s", c.Dir)
	if s.Queue != "" {
		line("Queue", "%s", s.Queue)
	}
	if s.Uptime > 0 {
		line("Up", "%s", humanize.Span(s.Uptime))
	}
	if s.Version != "" {
		line("Version", "%s", s.Version)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
