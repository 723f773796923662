package native

// Broker is a sandbox.Broker that confines programs.
type Broker = seatbelt

// sandboxExec is the program of macOS that confines another one.
const sandboxExec = "/usr/bin/sandbox-exec"

// New returns a Broker.
func New(o Options) *Broker { return newSeatbelt(o, sandboxExec) }
