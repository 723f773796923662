// Package httpapi serves the HTTP routes of the gateway's port:
//
//	/healthz /health   the process is alive
//	/startupz /startup starting, started or draining
//	/readyz /ready     ready to serve; local or authenticated requests also see which part is not
//	/metrics           Prometheus metrics, for local or authenticated requests
//	/tools/invoke      one tool call, for authenticated requests
//	/v1/               the assistant in the forms of model services (package modelapi)
//	/__openclaw__/     the canvas: pages that the assistant shows (package surface/canvas)
//	/hooks/            work that other programs order (package webhook)
//	/                  the web page (package webui), or the Control UI and its bootstrap configuration
//
// Every request passes access.Authenticator.Guard first. Requests for a
// WebSocket, on any path, are passed to the gateway.
package httpapi
