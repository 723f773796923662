// Package httpapi serves what the gateway's port answers beside its protocol:
//
//	/healthz /health   the process answers
//	/startupz /startup whether it is starting, started or draining
//	/readyz /ready     it is usable; which part is not, for this machine and who shows a credential
//	/metrics           counters and gauges for Prometheus, for the same
//	/tools/invoke      one call of a tool, for who shows a credential
//	/                  the Control UI from a directory, and what it asks first
//
// Every request passed an access.Door before it comes here. A request that
// asks for a WebSocket goes to the gateway, whatever its path.
package httpapi
