package wire

import "encoding/json"

// Methods of the canvas: what the assistant shows beside the conversation.
const (
	MethodSurfaceRefresh = "plugin.surface.refresh" // a new address for this connection
	MethodCanvasView     = "canvas.view"            // what a session shows
	MethodCanvasAction   = "canvas.action"          // the person used a control
	MethodCanvasReport   = "canvas.report"          // a screen could not draw something
)

// EventCanvas reports that the canvas of a session shows something else.
const EventCanvas = "canvas.changed"

// SurfaceCanvas is the name of the canvas among the surfaces of plug-ins.
const SurfaceCanvas = "canvas"

// SurfaceRefresh is the parameters of MethodSurfaceRefresh.
type SurfaceRefresh struct {
	Surface string `json:"surface"`
}

// SurfaceRefreshed is the result.
type SurfaceRefreshed struct {
	Surface string            `json:"surface"`
	URLs    map[string]string `json:"pluginSurfaceUrls"`
	Expires Millis            `json:"expiresAtMs"`
}

// CanvasSession is the parameters of MethodCanvasView.
type CanvasSession struct {
	SessionKey string `json:"sessionKey,omitempty"`
	AgentID    string `json:"agentId,omitempty"`
}

// CanvasView is what the canvas of a session shows.
type CanvasView struct {
	SessionKey string `json:"sessionKey"`
	Kind       string `json:"kind"`                 // page or a2ui; empty: nothing
	Page       string `json:"page,omitempty"`       // the file of a page
	Version    int64  `json:"version"`              // rises with each change
	URL        string `json:"url,omitempty"`        // where this connection may fetch it
	Expires    Millis `json:"expiresAtMs,omitzero"` // after that without use
}

// CanvasAction is the parameters of MethodCanvasAction.
type CanvasAction struct {
	SessionKey     string          `json:"sessionKey"`
	Surface        string          `json:"surfaceId"`
	Component      string          `json:"sourceComponentId"`
	Name           string          `json:"name"`
	Context        json.RawMessage `json:"context,omitempty"`
	IdempotencyKey string          `json:"idempotencyKey"`
}

// CanvasReport is the parameters of MethodCanvasReport.
type CanvasReport struct {
	SessionKey string `json:"sessionKey"`
	Message    string `json:"message"`
}
