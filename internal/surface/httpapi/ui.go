package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/surface/access"
)

// UI is the Control UI: its files, and its bootstrap configuration.
type UI struct {
	Files fs.FS
	Base  string // path prefix; "": root
	// Bootstrap returns the answer to the UI's first request.
	Bootstrap func() Bootstrap
}

// Bootstrap is the configuration of the Control UI before it connects.
type Bootstrap struct {
	BasePath       string   `json:"basePath"`
	Name           string   `json:"assistantName"`
	Avatar         string   `json:"assistantAvatar"`
	Agent          string   `json:"assistantAgentId"`
	Version        string   `json:"serverVersion"`
	Sandbox        string   `json:"embedSandbox"`
	External       bool     `json:"allowExternalEmbedUrls"`
	Favicons       bool     `json:"automaticallyFetchFavicons"`
	Terminal       bool     `json:"terminalEnabled"`
	CLIAgents      bool     `json:"cliAgentsEnabled"`
	PluginAuth     bool     `json:"pluginAssetsRequireAuth"`
	PluginFrames   []string `json:"pluginFrameGrants"`
	CommunityInvit bool     `json:"communityInvite"`
}

// folders are the UI's directories, to which pages at deep paths refer
// relatively.
var folders = [...]string{"assets", "fonts", "themes", "provider-icons"}

// routes returns the routes of the UI.
func (u *UI) routes() []Route {
	u.Base = "/" + strings.Trim(u.Base, "/")
	if u.Base == "/" {
		u.Base = ""
	}
	out := []Route{
		get(u.Base+"/control-ui-config.json", Credential, u.bootstrap),
		get(u.Base+"/__openclaw/control-ui-config.json", Credential, u.bootstrap),
		fallback(u.Base+"/", u.file),
	}
	if u.Base == "" {
		out = append(out, get("/__openclaw__/control-ui-config.json", Credential, u.bootstrap))
	}
	return out
}

// bootstrap answers the first request of the UI.
func (u *UI) bootstrap(w http.ResponseWriter, _ *http.Request) {
	v := u.Bootstrap()
	v.BasePath, v.Sandbox, v.PluginFrames = u.Base, "scripts", []string{}
	access.WriteJSON(w, http.StatusOK, v)
}

// file serves a file of the UI, or its page for a path that the page handles
// itself.
func (u *UI) file(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(strings.TrimPrefix(r.URL.Path, u.Base)), "/")
	parts := strings.Split(name, "/")
	for i, p := range parts {
		if i > 0 && slices.Contains(folders[:], p) {
			name = strings.Join(parts[i:], "/")
			break
		}
	}
	if path.Ext(name) == "" || name == "index.html" {
		u.page(w)
		return
	}
	info, err := fs.Stat(u.Files, name)
	if errors.Is(err, fs.ErrNotExist) { // the page links to files beside it, also from an address below
		name = path.Base(name)
		info, err = fs.Stat(u.Files, name)
	}
	if err != nil || !info.Mode().IsRegular() {
		http.NotFound(w, r)
		return
	}
	if strings.HasPrefix(name, "assets/") {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		w.Header().Set("Cache-Control", "no-cache")
	}
	http.ServeFileFS(w, r, u.Files, name)
}

func (u *UI) page(w http.ResponseWriter) {
	b, err := fs.ReadFile(u.Files, "index.html")
	if err != nil {
		text := "the Control UI is missing: gateway.controlUi.root has no index.html"
		if !errors.Is(err, fs.ErrNotExist) {
			text = "cannot read the Control UI"
		}
		access.Error(w, http.StatusServiceUnavailable, "unavailable", text)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", policy(b))
	_, _ = w.Write(b) // the client may be gone
}

// policy returns a content security policy that allows the page's own and
// inline scripts.
func policy(page []byte) string {
	scripts := "'self'"
	inline := regexp.MustCompile(`(?is)<script([^>]*)>(.*?)</script>`)
	for _, m := range inline.FindAllSubmatch(page, -1) {
		if strings.Contains(strings.ToLower(string(m[1])), "src=") {
			continue
		}
		sum := sha256.Sum256(m[2])
		scripts += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'self'; script-src " + scripts +
		"; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob: https:; " +
		"font-src 'self' data:; media-src 'self' data: blob:; connect-src 'self' ws: wss: data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
}
