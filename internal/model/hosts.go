package model

import "net/url"

// Hosts returns the hosts, with their ports where they name one, of the
// services that are configured or known, and of model servers on this machine.
func (c Config) Hosts() []string {
	var urls []string
	for _, p := range c.Providers {
		urls = append(urls, p.BaseURL)
	}
	for _, s := range services {
		urls = append(urls, s.url)
	}
	for _, l := range locals {
		urls = append(urls, l.url)
	}
	var hosts []string
	for _, text := range urls {
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			hosts = append(hosts, u.Host)
		}
	}
	return hosts
}
