package canvas

import (
	"context"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// The paths at which the canvas is served: pages, the page that draws A2UI, and addresses
// that need no other credential. The names are OpenClaw's, whose apps expect them.
const (
	PagesPath      = "/__openclaw__/canvas/"
	A2UIPath       = "/__openclaw__/a2ui/"
	CapabilityPath = "/__openclaw__/cap/"
	ReloadPath     = "/__openclaw__/reload"
)

// The commands of nodes that show A2UI. Older apps have only the second one.
const (
	PushLines    = "canvas.a2ui.pushJSONL"
	PushMessages = "canvas.a2ui.push"
)

// Kind is what a canvas shows.
type Kind string

// The kinds.
const (
	Nothing  Kind = ""
	Page     Kind = "page" // a file
	Surfaces Kind = "a2ui"
)

// View is what the canvas of a session shows.
type View struct {
	Kind    Kind
	Page    string // path of the file in the folder; of Page
	Version int64  // rises with each change of what is shown, but not of the surfaces
}

// Path returns where the view is served, below the address of a capability.
func (v View) Path() string {
	if v.Kind == Surfaces {
		return A2UIPath
	}
	u := url.URL{Path: PagesPath + v.Page}
	return u.EscapedPath()
}

// Changed is published when the canvas of a session shows something else.
type Changed struct{ View }

// EventPayload marks the change as a payload.
func (Changed) EventPayload() {}

// Pushed is the result of a push.
type Pushed struct {
	Messages int
	Surfaces []string // that there are now
	Missing  []string // components that others name, and that no message defines yet
}

// Host shows the canvas of sessions on the web page of the gateway.
type Host interface {
	// Show shows a file of the folder of the agent of a session; "": what was pushed, or
	// the file index.html if nothing was.
	Show(ctx context.Context, key chela.SessionKey, page string) (View, error)
	// Hide hides the canvas. What was pushed stays.
	Hide(key chela.SessionKey)
	// Push adds A2UI messages and shows them.
	Push(key chela.SessionKey, messages []Message) (Pushed, error)
	// Reset removes everything that was pushed.
	Reset(key chela.SessionKey)
	// Link returns an address of what the canvas shows, which a browser can open until the
	// time that is returned; "": the gateway has no port.
	Link(key chela.SessionKey) (string, time.Time)
	// Problems returns what went wrong on screens since the last call.
	Problems(key chela.SessionKey) []string
}

// PageOf returns the file that a target means, as a model or a person names it: a path in the
// folder of the pages, or one at which the gateway serves it. external says that the target is
// an address on the web instead. ok is false for anything else.
func PageOf(target string) (page string, external, ok bool) {
	target = strings.TrimSpace(target)
	if u, err := url.Parse(target); err != nil {
		return "", false, false
	} else if u.Scheme != "" || u.Host != "" {
		s := strings.ToLower(u.Scheme)
		return "", true, (s == "http" || s == "https") && u.Host != "" && u.User == nil
	}
	if target, _, _ = strings.Cut(target, "#"); target == "" {
		return "", false, true
	}
	target, _, _ = strings.Cut(target, "?")
	if p, err := url.PathUnescape(target); err == nil {
		target = p
	}
	target = strings.TrimPrefix(target, strings.TrimSuffix(PagesPath, "/"))
	target = strings.TrimPrefix(strings.TrimPrefix(target, "/"), Folder+"/")
	if strings.ContainsAny(target, "\x00\\") {
		return "", false, false
	}
	if target == "" {
		return "index.html", false, true
	}
	clean := path.Clean("/" + target)[1:]
	if clean != strings.TrimSuffix(target, "/") {
		return "", false, false
	}
	return clean, false, true
}
