package model

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/egress"
)

// Hosts returns the host:port of the configured and the known services and of the
// model servers on this machine. A host without a port stands for all its ports, when
// the provider's request.allowPrivateNetwork is set.
func (c Config) Hosts() []string { return c.hosts(nil) }

// hosts is Hosts with those of other URLs.
func (c Config) hosts(urls []string) []string {
	var hosts []string
	add := func(text string, all bool) {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" {
			return
		}
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		if all || port == "" {
			hosts = append(hosts, u.Hostname())
			return
		}
		hosts = append(hosts, net.JoinHostPort(u.Hostname(), port))
	}
	for _, p := range c.Providers {
		add(p.BaseURL, p.Request.Private)
	}
	for _, s := range slices.Concat(services[:], locals[:]) {
		add(s.url, false)
	}
	for _, u := range urls {
		add(u, false)
	}
	return hosts
}

// HTTPClient returns the client for the providers of a configuration and for other
// configured URLs. It reaches their hosts wherever those are, limits the time to connect, and waits for an
// answer as long as its caller does.
func HTTPClient(c Config, env func(string) string, urls ...string) *http.Client {
	return egress.Client(egress.Options{
		Policy: egress.Policy{Hosts: c.hosts(urls)}, Proxy: egress.Proxies(env), ProxyResolves: true,
		ConnectTimeout: 30 * time.Second, MaxIdlePerHost: 64,
	})
}
