package egress

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// Client returns an HTTP client with a new transport. It follows as many
// redirects as the options say, within these rules: none leads from https to
// http; a request to another origin than the first has no body, and of its
// header only what says which answers are understood, also when it comes back
// to the first origin later.
func Client(o Options) *http.Client {
	return &http.Client{
		Transport: New(o),
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			return redirect(r, via, o.Redirects)
		},
	}
}

// redirect prepares r, which comes after via, or says why it is not made.
func redirect(r *http.Request, via []*http.Request, most int) error {
	if most == 0 {
		return http.ErrUseLastResponse
	}
	if len(via) > most {
		return fmt.Errorf("more than %d redirects", most)
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

// portOf returns the port that a URL leads to.
func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
