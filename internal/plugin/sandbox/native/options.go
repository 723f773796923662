package native

import (
	"context"
	"net"
)

// Options configure a Broker.
type Options struct {
	// Home is the person's home folder. In a cage it is empty but for toolchains.
	Home string
	// Layers is a folder for what programs write to the toolchains. It may be
	// deleted at any time that no program runs. "": there are no toolchains.
	Layers string
	// Never returns the files and folders that are never shown, such as the folder
	// with the state of the gateway, without links in their folders. A workspace in
	// one of them is shown. It is called for every program. nil: there are none.
	Never func() []string
	// Dial connects to a host that the rights of a program name. It must check the
	// addresses that a name resolves to. nil: no program has a network.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Watch is the number of folders of a workspace from which on the system is asked
	// which of them change; 0: 200.
	Watch int
}

// never returns the files and folders that are never shown.
func (o Options) never() []string {
	if o.Never == nil {
		return nil
	}
	return o.Never()
}
