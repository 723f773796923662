package nodehost

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/identity"
	"github.com/chela-ai/chela/wire"
)

// Options configures a Host. All fields are required unless stated otherwise.
type Options struct {
	Log     *slog.Logger
	Version string
	Name    string // of the node, for people
	Tools   Tools

	Gateway string                                      // its address, by which State knows it
	URL     string                                      // that is dialed
	Dial    func(ctx context.Context) (net.Conn, error) // opens its transport; nil: TCP
	Auth    wire.Auth                                   // credentials besides the token of the device
	// State holds the key of the device and its tokens.
	State *identity.State

	// Tell is called with what a person should know, as a line.
	Tell func(line string)
	// Delay returns the time before an attempt to connect, counted from 1, after err; nil:
	// client.Backoff, and at most a quarter of an hour.
	Delay func(attempt int, err error) time.Duration
}

// File is the name of the file in a state directory with the identity of the node.
const File = "node/node.json"

// Path returns the path of that file in a state directory.
func Path(state string) string { return filepath.Join(state, filepath.FromSlash(File)) }

// Exists reports whether a state directory has the file.
func Exists(state string) bool {
	_, err := os.Stat(Path(state))
	return err == nil
}

// maxRunning is the number of commands that run at the same time.
const maxRunning = 16

// Run connects to the gateway, and carries out what it sends, until ctx ends or the gateway
// refuses the machine for good.
func Run(ctx context.Context, o Options) error {
	h := &host{o: o, running: map[string]context.CancelFunc{}}
	defer h.wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the commands
	if o.Delay == nil {
		h.o.Delay = client.Backoff
	}
	for attempt := 1; ; attempt++ {
		begun := time.Now()
		err := h.session(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(begun) > steady {
			attempt = 1
		}
		wait, err := h.after(attempt, err)
		if err != nil {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// steady is how long a connection lasts that was no failed attempt.
const steady = time.Minute

// pairingDelay is the time between attempts while a person has to approve the machine. A
// request expires five minutes after the last one.
const pairingDelay = 5 * time.Second

// after returns the time before the next attempt after err, or the error with which the host
// ends.
func (h *host) after(attempt int, err error) (time.Duration, error) {
	refused, ok := errors.AsType[*wire.Error](err)
	switch {
	case !ok || refused.Code == wire.Unavailable:
	case refused.Code == wire.NotPaired:
		var d struct {
			ID string `json:"requestId"`
		}
		_ = json.Unmarshal(refused.Details, &d) // without an id, the list shows it
		h.tell("waiting for approval; on the gateway: chela devices approve " + cmp.Or(d.ID, "REQUEST"))
		return min(h.o.Delay(1, err), pairingDelay), nil
	case refused.Detail() == "AUTH_RATE_LIMITED":
	case h.o.State.Token(h.o.Gateway) != "":
		// The token of the device may have been revoked, while the other credential is right.
		if ferr := h.o.State.SetToken(h.o.Gateway, ""); ferr != nil {
			return 0, ferr
		}
		if h.o.Auth != (wire.Auth{}) {
			return h.o.Delay(attempt, err), nil
		}
		return 0, &chela.Error{Code: chela.CodeForbidden, Message: "the gateway does not accept this machine any more",
			Err: err, Hint: "chela devices invite --access node on the gateway, and then chela node run --pair CODE here"}
	default:
		return 0, &chela.Error{Code: chela.CodeForbidden, Message: "the gateway refuses this machine", Err: err,
			Hint: "chela devices invite --access node on the gateway, and then chela node run --pair CODE here"}
	}
	if errors.Is(err, client.ErrInsecure) {
		return 0, &chela.Error{Code: chela.CodeInvalid, Message: h.o.Gateway, Err: err, Hint: "chela node run --tls"}
	}
	h.tell("not connected: " + err.Error())
	return h.o.Delay(attempt, err), nil
}

// host is a running Host.
type host struct {
	o  Options
	wg sync.WaitGroup // commands

	mu      sync.Mutex
	told    string                        // the last line for the person
	running map[string]context.CancelFunc // commands by the ids of their calls
}

// tell tells the person a line, unless it is the same as the last one.
func (h *host) tell(line string) {
	h.mu.Lock()
	same := line == h.told
	h.told = line
	h.mu.Unlock()
	if !same {
		h.o.Tell(line)
	}
}

// session is one connection, until it ends. The token of the device comes first. An invitation is
// used up by the first connection, and would be refused then.
func (h *host) session(ctx context.Context) error {
	auth := h.o.Auth
	auth.DeviceToken = h.o.State.Token(h.o.Gateway)
	if auth.DeviceToken != "" {
		auth.Bootstrap = "" // it is used up
	}
	c, err := client.Dial(ctx, client.Options{
		URL:      h.o.URL,
		Dial:     h.o.Dial,
		ID:       "node-host",
		Name:     h.o.Name,
		Version:  h.o.Version,
		Mode:     wire.ModeNode,
		Role:     wire.RoleNode,
		Scopes:   []string{},
		Caps:     []string{"system"},
		Commands: h.o.Tools.commands(),
		Family:   family(),
		Auth:     &auth,

		Key:  h.o.State.Key(),
		Once: true,
	})
	if err != nil {
		return err
	}
	defer c.Close()
	if t := c.Hello().Auth.DeviceToken; t != "" {
		if err := h.o.State.SetToken(h.o.Gateway, t); err != nil {
			return err
		}
	}
	h.tell("connected to " + h.o.Gateway)
	for {
		select {
		case e, ok := <-c.Events():
			if !ok {
				return c.Err()
			}
			h.handle(ctx, c, e)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// family returns the family of devices that this machine belongs to.
func family() string {
	switch runtime.GOOS {
	case "darwin":
		return "Mac"
	case "windows":
		return "Windows"
	}
	return "Linux"
}

// handle handles an event of the gateway.
func (h *host) handle(ctx context.Context, c *client.Client, e wire.Event) {
	switch e.Name {
	case wire.EventNodeInvokeCancel:
		var p wire.NodeInvokeCancel
		if e.Decode(&p) == nil {
			h.mu.Lock()
			if cancel := h.running[p.ID]; cancel != nil {
				cancel()
			}
			h.mu.Unlock()
		}
	case wire.EventNodeInvokeRequest:
		var p wire.NodeInvokeRequest
		if err := e.Decode(&p); err != nil || p.ID == "" {
			h.o.Log.Warn("a call that cannot be read", "err", err)
			return
		}
		h.start(ctx, c, p)
	}
}

// start begins to carry out a call. The gateway may send a call again on a new connection; while
// it runs, it is not begun twice.
func (h *host) start(ctx context.Context, c *client.Client, p wire.NodeInvokeRequest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running[p.ID] != nil {
		return // it was sent twice
	}
	full := len(h.running) >= maxRunning
	ctx, cancel := context.WithCancel(ctx)
	h.running[p.ID] = cancel
	h.wg.Go(func() {
		defer func() {
			cancel()
			h.mu.Lock()
			delete(h.running, p.ID)
			h.mu.Unlock()
		}()
		res := wire.NodeInvokeResult{ID: p.ID, Node: p.Node}
		var payload any
		err := error(fault("BUSY", "this machine carries out %d commands already", maxRunning))
		if !full {
			payload, err = h.o.Tools.Do(ctx, p)
		}
		if err == nil {
			res.OK = true
			res.Payload, err = json.Marshal(payload)
		}
		if err != nil {
			res.OK, res.Payload, res.Error = false, nil, wireError(err)
		}
		h.o.Log.Info("call of the gateway", "command", p.Command, "id", p.ID, "err", err)
		if ctx.Err() != nil {
			return // nobody waits
		}
		limited, done := context.WithTimeout(ctx, answerTime)
		defer done()
		if err := c.Call(limited, wire.MethodNodeInvokeResult, res, nil); err != nil {
			h.o.Log.Warn("answer the gateway", "command", p.Command, "id", p.ID, "err", err)
		}
	})
}

// answerTime limits how long an answer may take to arrive.
const answerTime = 30 * time.Second

// wireError returns an error for the gateway.
func wireError(err error) *wire.NodeError {
	if f, ok := errors.AsType[*Fault](err); ok {
		return &wire.NodeError{Code: f.Code, Message: f.Message}
	}
	return &wire.NodeError{Code: wire.Unavailable, Message: err.Error()}
}

// Fault is an error with a code for the gateway.
type Fault struct{ Code, Message string }

// Error returns the message.
func (f *Fault) Error() string { return f.Message }

func fault(code, format string, args ...any) *Fault {
	return &Fault{code, fmt.Sprintf(format, args...)}
}

// shellLine returns the command line of a program with its arguments: that of the shell, if
// it is a shell that only runs one.
func shellLine(argv []string) (line string, shell bool) {
	if len(argv) == 3 &&
		slices.Contains([]string{"sh", "bash", "dash", "zsh"}, argv[0][strings.LastIndexByte(argv[0], '/')+1:]) &&
		slices.Contains([]string{"-c", "-lc", "-cl"}, argv[1]) {
		return argv[2], true
	}
	return "", false
}
