package cli

import (
	"context"
	"log/slog"
	"net"

	"github.com/chela-ai/chela/internal/secret"
	"github.com/chela-ai/chela/wire"
)

// Start is what a command asks of the engine that it starts or finds.
type Start struct {
	State    string           // state directory, absolute
	Config   string           // configuration file, absolute
	LastGood string           // copy of the last configuration that could be used
	Profile  string           // name of the profile; "": the default one
	Log      *slog.Logger     // where the engine logs
	Secrets  *secret.Redactor // is told the secrets that must not be in the log
}

// Engine is a gateway that runs in this process or in another one.
type Engine interface {
	// Dial opens a connection to the gateway.
	Dial(ctx context.Context) (net.Conn, error)
	// Close stops the engine when it is in this process. What is in progress
	// then is gone on with at the next start.
	Close(ctx context.Context) error
}

// Listen is where a gateway serves its port. What is empty comes from the
// configuration.
type Listen struct {
	Port     int    // 0: gateway.port; less: any that is free
	Bind     string // loopback, lan, tailnet, auto, custom
	Insecure bool   // without encryption also to other machines
	Force    bool   // ends another chela of this user that is in the way
}

// Gateway is an engine with a port.
type Gateway interface {
	Engine
	URL() string      // where it is
	NewToken() string // that was made at this start; "": there was one, or none is needed
	// Renew is Close before a start in the same process: clients are told that
	// the gateway comes back.
	Renew(ctx context.Context) error
	// Again tells when the configuration was changed in a way that takes a
	// Renew and a start.
	Again() <-chan struct{}
}

// Port is where programs reach a gateway, and how.
type Port struct {
	URL         string
	Auth        wire.Auth
	Fingerprint string // of its certificate; "": whoever signed it is trusted
}

// App is the application as the commands need it. Start is required; a command
// whose function is nil says that this build lacks it.
type App struct {
	Version string
	Start   func(context.Context, Start) (Engine, error)

	// Attach finds the engine that runs already.
	Attach func(context.Context, Start) (Engine, error)
	// Serve starts an engine in this process that also serves a port.
	Serve func(context.Context, Start, Listen) (Gateway, error)
	// Local returns where the port is according to the configuration, and the
	// credential for it.
	Local func(Start) (Port, error)

	// Providers are the model providers that need no configuration but a key.
	Providers []string
	// SaveKey keeps the key of a model provider in the state directory, for its
	// owner only. A name keeps it beside the provider's other keys.
	SaveKey func(s Start, provider, name, key string) error
	// Check looks at an installation without starting an engine.
	Check func(context.Context, Start) []Finding
	// Audit lists what makes an installation easier to take over. With fix,
	// modes of files that are too wide are narrowed.
	Audit func(ctx context.Context, s Start, fix bool) ([]Weakness, error)
	// Store keeps the database safe.
	Store Maintenance
}

// Maintenance makes copies of the database and brings them back.
type Maintenance interface {
	// Backup writes a complete copy to the file dst, which must not exist. The
	// engine may run meanwhile.
	Backup(ctx context.Context, s Start, dst string) error
	// Verify reads a copy and says what it holds, or what is wrong with it.
	Verify(ctx context.Context, file string) (summary string, err error)
	// Restore puts a copy in the place of the database, of which it keeps a
	// copy, and returns the name of that. No engine may run.
	Restore(ctx context.Context, s Start, src string) (kept string, err error)
	// Salvage makes a new database of what can be read of a damaged one, which
	// is kept, and says what was saved and what was lost. No engine may run.
	Salvage(ctx context.Context, s Start) (report []string, err error)
}

// Finding is one line of what a check found.
type Finding struct {
	Name   string `json:"name"`
	Status string `json:"status"` // StatusOK, StatusWarn, StatusFail
	Text   string `json:"text"`
	Hint   string `json:"hint,omitempty"` // a command that can be typed
}

// How serious a [Finding] is.
const (
	StatusOK   = "ok"
	StatusWarn = "warn"
	StatusFail = "fail"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)
