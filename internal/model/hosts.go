package model

import (
	"net"
	"net/url"
)

// Hosts returns the hosts with their ports of the services that are configured or
// known, and of model servers on this machine. All ports of a host belong to it
// when its provider may reach private networks.
func (c Config) Hosts() []string {
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
	for _, s := range services {
		add(s.url, false)
	}
	for _, l := range locals {
		add(l.url, false)
	}
	return hosts
}
