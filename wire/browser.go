package wire

import "encoding/json"

// MethodBrowserRequest carries out an action in a browser of the gateway.
const MethodBrowserRequest = "browser.request"

// BrowserRequest holds the parameters of browser.request, which have the form of an HTTP
// request. The answer is the body of the response.
type BrowserRequest struct {
	Method string `json:"method"` // GET, POST, DELETE
	// such as /snapshot; /tool takes the arguments of the tool browser as its body
	Path      string            `json:"path"`
	Query     map[string]string `json:"query,omitempty"`
	Body      json.RawMessage   `json:"body,omitempty"`
	TimeoutMs int64             `json:"timeoutMs,omitempty"`
}
