package browser

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

const (
	actionTime = 20 * time.Second  // default limit of an action
	maxTime    = 120 * time.Second // longest limit that a call may ask for
	settleTime = 100 * time.Millisecond
	loadTime   = 10 * time.Second // for a page that an action leads to
)

// address returns the address of a page that a tab may load.
func address(s string) (string, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return "", errors.New("url is missing")
	}
	if strings.EqualFold(s, blank) {
		return blank, nil
	}
	if !strings.Contains(s, "://") && !strings.HasPrefix(s, "/") {
		if name, _, ok := strings.Cut(s, ":"); !ok || strings.Contains(name, ".") || name == "localhost" {
			host, _, _ := strings.Cut(name, "/")
			if _, err := netip.ParseAddr(host); err == nil || host == "localhost" { // a server of the person
				s = "http://" + s
			} else {
				s = "https://" + s
			}
		}
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "", fmt.Errorf("%q is not a URL: want http://… or https://…", s)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", fmt.Errorf("%q is not allowed: the browser opens http://… and https://… only", s)
	case u.User != nil:
		return "", errors.New("URLs with a user name or password are not allowed")
	}
	return u.String(), nil
}

// allowed returns an error for a page whose content is not to be read.
func allowed(address string) error {
	scheme, _, _ := strings.Cut(address, ":")
	switch {
	case address == "", address == blank, scheme == "http", scheme == "https", scheme == "blob",
		strings.HasPrefix(address, blank), address == "chrome-error://chromewebdata/":
		return nil
	}
	return fmt.Errorf("a page with an address of the kind %s: is not read; navigate to http://… or https://…", scheme)
}

// blocked returns the error for a host that is not allowed.
func blocked(why, host string) error {
	return fmt.Errorf(
		"%s. To allow the host, the person can run: chela config set browser.ssrfPolicy.allowedHostnames '[%q]'", why, host)
}

// navigate loads a page in the tab and waits until it has loaded. late reports that it goes
// on loading.
func (t *tab) navigate(ctx context.Context, to string) (late bool, err error) {
	t.leave(true)
	defer t.leave(false)
	var nav struct {
		Loader   string `json:"loaderId"`
		Error    string `json:"errorText"`
		Download bool   `json:"isDownload"`
	}
	if err := t.call(ctx, "Page.navigate", map[string]any{"url": to}, &nav); err != nil {
		if ctx.Err() != nil {
			t.stopLoading()
			return false, fmt.Errorf("%s did not answer in time", hostOf(to))
		}
		return false, err
	}
	switch {
	case nav.Download:
		return false, errors.New("this address is a download; use the action download with the url")
	case nav.Error != "":
		return false, t.loadError(ctx, nav.Error, to)
	case nav.Loader == "": // within the document
		return false, nil
	}
	err = t.until(ctx, func() bool { return t.document == nav.Loader && t.reached["load"] })
	if ctx.Err() != nil {
		t.mu.Lock()
		readable := t.document == nav.Loader && t.reached["DOMContentLoaded"]
		t.mu.Unlock()
		if readable {
			return true, nil
		}
		t.stopLoading()
		return false, fmt.Errorf("%s did not load in time", hostOf(to))
	}
	if err != nil {
		return false, err
	}
	_, at := t.state()
	if why := t.browser.process.proxy.why(hostOf(at)); why != "" {
		return false, blocked(why, hostOf(at))
	}
	return false, nil
}

// loadError returns why a page did not load.
func (t *tab) loadError(ctx context.Context, code, to string) error {
	wait, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	// the error page names where a redirect led to
	_ = t.until(wait, func() bool { return strings.HasPrefix(t.url, "http") && !t.loading })
	_, at := t.state()
	for _, host := range [...]string{hostOf(at), hostOf(to)} {
		if why := t.browser.process.proxy.why(host); why != "" {
			return blocked(why, host)
		}
	}
	switch code {
	case "net::ERR_TUNNEL_CONNECTION_FAILED":
		code = "no connection"
	case "net::ERR_ABORTED":
		code = "the page was not loaded (it may be a download)"
	}
	return fmt.Errorf("open %s: %s", to, code)
}

func (t *tab) stopLoading() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	_ = t.browser.process.conn.call(ctx, t.conn, "Page.stopLoading", nil, nil) // the tab may be gone
}

// state returns the title and the address of the page.
func (t *tab) state() (title, at string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.title, t.url
}

// settle waits for what an action leads to: a moment, and until another page has loaded. It
// reports whether there is another document now.
func (t *tab) settle(ctx context.Context, before string) (bool, error) {
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-t.gone:
		return true, nil // the page closed itself
	}
	wait, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	err := t.until(wait, func() bool { return !t.loading })
	if wait.Err() != nil && ctx.Err() == nil { // a page may load forever
		err = nil
	}
	if errors.Is(err, errGone) {
		return true, nil
	}
	return t.at() != before, err
}

// at returns what identifies the document.
func (t *tab) at() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.document
}
