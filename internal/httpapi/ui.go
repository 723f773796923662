package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/access"
)

// UI is the Control UI: files of a directory, and what it asks before it
// connects.
type UI struct {
	Files fs.FS
	Base  string // path that it is served under; "": at the root
	// Bootstrap is the UI's first answer.
	Bootstrap func() Bootstrap
}

// Bootstrap is what the Control UI is told before it connects.
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

// folders are the UI's directories, which a page at a deep path names
// relatively.
var folders = [...]string{"assets", "fonts", "themes", "provider-icons"}

// routes returns what the UI asks for.
func (u *UI) routes() []Route {
	u.Base = "/" + strings.Trim(u.Base, "/")
	if u.Base == "/" {
		u.Base = ""
	}
	out := []Route{
		looks(u.Base+"/control-ui-config.json", Credential, u.boot),
		looks(u.Base+"/__openclaw/control-ui-config.json", Credential, u.boot),
		looks(u.Base+"/", Anyone, u.file),
	}
	if u.Base == "" {
		out = append(out, looks("/__openclaw__/control-ui-config.json", Credential, u.boot))
	}
	for _, other := range [...]string{"/api/", "/mcp", "/v1/", "/hooks/", "/tools/", "/__openclaw__/"} {
		out = append(out, looks(other, Anyone, http.NotFound))
	}
	return out
}

// boot answers the first request of the UI.
func (u *UI) boot(w http.ResponseWriter, _ *http.Request) {
	v := u.Bootstrap()
	v.BasePath, v.Sandbox, v.PluginFrames = u.Base, "scripts", []string{}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and booleans
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(b) // a client that went away needs no answer
}

// file serves a file of the UI, or its page for a path that the page itself
// understands.
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
		text := "the Control UI is not there: gateway.controlUi.root has no index.html"
		if !errors.Is(err, fs.ErrNotExist) {
			text = "the Control UI cannot be read"
		}
		access.Error(w, http.StatusServiceUnavailable, "unavailable", text)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", policy(b))
	_, _ = w.Write(b) // a client that went away needs no answer
}

// policy lets a page run its own scripts, and those in it that are there now.
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
	return "default-src 'self'; script-src " + scripts + "; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob: https:; " +
		"font-src 'self' data:; media-src 'self' data: blob:; connect-src 'self' ws: wss: data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
}
