// Package service is the contract of a background part of the gateway: a
// scheduler, a heartbeat, a poller, a file watcher.
//
// Services are started in a fixed order and stopped in the opposite one. A
// service is made from its section of the configuration and does nothing before
// Run. When the section changes, a service that implements [Reloader] is asked
// first; any other service is stopped and made again.
package service

import (
	"context"
	"encoding/json"
)

// Service works in the background.
//
// Run returns when ctx has ended and everything that it started is done. A
// service that has nothing left to do may return nil earlier. An error means
// that the service failed; it is logged and reported, and the service is not
// restarted until its configuration changes.
type Service interface {
	Run(ctx context.Context) error
}

// Reloader is a Service that can change its configuration while it runs. Reload
// reports whether the service applied the section; false means that it must be
// stopped and made again. It is called while Run is in progress.
type Reloader interface {
	Reload(raw json.RawMessage) (bool, error)
}

// Func is a Service without configuration.
type Func func(ctx context.Context) error

// Run implements Service.
func (f Func) Run(ctx context.Context) error { return f(ctx) }
