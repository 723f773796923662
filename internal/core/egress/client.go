package egress

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// Client returns an HTTP client with a new transport. It follows up to
// o.MaxRedirects redirects, with these rules: none leads from https to http; a
// request to another origin than the first has no body and keeps only the
// headers that negotiate content, also if a later redirect returns to the first
// origin.
func Client(o Options) *http.Client {
	return &http.Client{
		Transport: New(o),
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			return redirect(r, via, o.MaxRedirects)
		},
	}
}

// redirect prepares the request r, which follows via, or returns the reason why
// it is refused.
func redirect(r *http.Request, via []*http.Request, limit int) error {
	if limit == 0 {
		return http.ErrUseLastResponse
	}
	if len(via) > limit {
		return fmt.Errorf("more than %d redirects", limit)
	}
	if via[len(via)-1].URL.Scheme == "https" && r.URL.Scheme != "https" {
		return errors.New("the page redirects from https to " + r.URL.Scheme)
	}
	left := false
	for _, v := range append(via[1:len(via):len(via)], r) {
		left = left || !sameOrigin(v.URL, via[0].URL)
	}
	if !left {
		return nil
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return fmt.Errorf("a %s is redirected to another origin", r.Method)
	}
	r.URL.User = nil
	for name := range r.Header {
		switch name {
		case "Accept", "Accept-Encoding", "Accept-Language", "User-Agent":
		default:
			delete(r.Header, name)
		}
	}
	return nil
}

// sameOrigin reports whether both URLs have the same scheme, host and port.
func sameOrigin(a, b *url.URL) bool {
	x, y := hostOf(a), hostOf(b)
	return a.Scheme == b.Scheme && x != "" && x == y && portOf(a) == portOf(b)
}

// hostOf returns the host of a URL in its canonical form, or "".
func hostOf(u *url.URL) string {
	host, err := canonical(u.Hostname())
	if err != nil {
		return ""
	}
	return host
}

// portOf returns the port of a URL, or the default port of its scheme.
func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
