package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/plugin/sandbox/stdio"
)

const (
	stopTime   = time.Second            // until a program that was told to end gets TERM
	grace      = time.Second            // between TERM and KILL
	exitTime   = 250 * time.Millisecond // for a program to end, after its output has ended
	pingTime   = 5 * time.Second        // for an answer to a ping, after a call took too long
	maxMessage = 16 << 20               // bytes of a message from a server
)

var (
	errLost = errors.New("the connection broke")
	// ErrNeedsAuth is the error about a server on the network at which somebody has to log in.
	ErrNeedsAuth = errors.New("it wants you to log in")
	errStopped   = errors.New("it was stopped")
	errClosed    = errors.New("the gateway is shutting down")
	errSilent    = errors.New("it does not answer")
)

// conn is a connection to a running server.
type conn struct {
	name    string
	session *sdk.ClientSession
	link    link
	ended   chan struct{} // closed when the connection and the program have ended
	why     error         // why they ended; valid after ended is closed
	noted   chan struct{} // closed when the server's failure was noted

	ctx      context.Context // of the connection and the program
	cancel   context.CancelCauseFunc
	stopOnce sync.Once
	stopped  atomic.Bool           // stop was called
	refused  atomic.Pointer[error] // why the server refuses this program; nil: it does not
	printed  stdio.Tail
	redact   func(string) string

	process sandbox.Process // nil: the server is on the network
	input   *stdio.Input
	exited  chan struct{} // closed when the program has ended; nil: there is none
	exit    string        // how it ended by itself; valid after exited is closed

	stale chan struct{} // receives if the server changed its list of tools

	mu     sync.Mutex
	last   int // last progress token
	update map[string]*progress
}

// link remembers the connection of a transport.
type link struct {
	sdk.Transport
	conn sdk.Connection
}

// Connect implements sdk.Transport.
func (l *link) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := l.Transport.Connect(ctx)
	l.conn = conn
	return conn, err
}

// dial connects to a server, which it starts if it is a program, and lists its tools.
// The connection lasts until stop is called. ended is called at its end, before
// conn.ended is closed.
func (p *Pool) dial(ctx context.Context, name string, s mcp.Server, ended func(*conn)) (*conn, Catalog, error) {
	c := &conn{
		name:   name,
		ended:  make(chan struct{}),
		noted:  make(chan struct{}),
		stale:  make(chan struct{}, 1),
		update: map[string]*progress{},
		redact: p.o.Redact,
	}
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	late := fmt.Errorf("it did not answer within %v", s.ConnectTimeout())
	limit := time.AfterFunc(s.ConnectTimeout(), func() { c.cancel(late) })
	defer limit.Stop()
	defer context.AfterFunc(ctx, func() { c.cancel(context.Cause(ctx)) })()

	cat, err := p.connect(c, s)
	if err == nil && !limit.Stop() {
		err = late
	}
	if err != nil {
		err = c.explain(err)
		c.end()
		ended(c)
		return nil, Catalog{}, err
	}
	context.AfterFunc(c.ctx, func() { _ = c.link.conn.Close() }) // the session ends
	p.wg.Go(func() {
		err := c.session.Wait()
		c.cancel(c.cause(cmp.Or(err, io.EOF)))
		c.why = c.explain(nil)
		c.end()
		ended(c)
		close(c.ended)
	})
	return c, cat, nil
}

// patientFor limits the wait for an answer to the question which the library asks before it
// sends "initialize", and which servers of older protocols should refuse. Some ignore it.
func patientFor(limit time.Duration) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if method == "server/discover" {
				var cancel func()
				ctx, cancel = context.WithTimeout(ctx, limit)
				defer cancel()
			}
			return next(ctx, method, req)
		}
	}
}

// connect starts the server and the session.
func (p *Pool) connect(c *conn, s mcp.Server) (cat Catalog, err error) {
	if err := s.Validate(); err != nil {
		return cat, err
	}
	switch s.Kind() {
	case mcp.Stdio:
		c.link.Transport, err = p.startProgram(c, s)
	case mcp.HTTP:
		c.link.Transport = &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: p.client(c, s),
			MaxEventSize: maxMessage}
	default:
		c.link.Transport = &sdk.SSEClientTransport{Endpoint: s.URL, HTTPClient: p.client(c, s), MaxEventSize: maxMessage}
	}
	if err != nil {
		return cat, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "chela", Version: p.o.Version}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case c.stale <- struct{}{}:
			default:
			}
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			c.progress(r.Params)
		},
	})
	client.AddSendingMiddleware(patientFor(s.ConnectTimeout() / 3))
	if c.session, err = client.Connect(c.ctx, &c.link, nil); err != nil {
		return cat, err
	}
	return c.list(c.ctx)
}

// startProgram starts the program of a server.
func (p *Pool) startProgram(c *conn, s mcp.Server) (sdk.Transport, error) {
	broker, rights := p.o.Broker, s.Rights
	if rights != nil {
		if p.o.Cage == nil {
			return nil, fmt.Errorf("this host cannot confine the program. To run it with all rights of yours: chela config set plugins.entries.%s.sandbox false", s.Plugin)
		}
		broker = p.o.Cage
		rights = new(*s.Rights)
	}
	vars, dropped := s.Variables()
	if len(dropped) > 0 {
		p.o.Log.Warn("variables of an MCP server are not set, because they change which code runs",
			"server", c.name, "variables", dropped)
	}
	env := sandbox.Environment(p.o.Environ, vars)
	dir := s.Folder(p.o.State)
	path := s.Command
	switch {
	case filepath.IsAbs(path):
	case strings.ContainsAny(path, `/\`):
		path = filepath.Join(dir, path)
	default:
		if path = sandbox.Look(env)(path); path == "" {
			return nil, fmt.Errorf("the program %s is not in PATH", s.Command)
		}
	}
	r, w := io.Pipe()
	c.input = stdio.NewInput()
	process, err := broker.Start(c.ctx, sandbox.Plan{
		Path: path, Argv: append([]string{path}, s.Args...), Dir: dir, Env: env, Rights: rights,
		Stdin: c.input, Stderr: &c.printed, Grace: grace,
	}, &output{messages: w, other: &c.printed})
	if err != nil {
		return nil, err
	}
	c.process, c.exited = process, make(chan struct{})
	p.wg.Go(func() {
		exit, err := process.Wait()
		if c.ctx.Err() == nil {
			c.exit = describe(exit, err)
		}
		_ = w.Close()
		_ = c.input.Close()
		close(c.exited)
	})
	return &sdk.IOTransport{Reader: r, Writer: c.input, MaxLineLength: maxMessage}, nil
}

const (
	exitStatus = "the program ended with exit status "
	exitedWell = exitStatus + "0"
)

// describe says how a program ended.
func describe(exit sandbox.Exit, err error) string {
	switch {
	case exit.Signal != "":
		return "the program was ended by " + exit.Signal
	case exit.Code == 0 && err != nil:
		return "the program ended: " + err.Error()
	}
	return exitStatus + strconv.Itoa(exit.Code)
}

// stop ends the connection and the program, and waits for their end. A program is
// first told by the end of its input.
func (c *conn) stop() {
	c.stopped.Store(true)
	c.stopOnce.Do(func() {
		if c.process == nil {
			t := time.AfterFunc(stopTime, func() { c.cancel(errStopped) })
			defer t.Stop()
			_ = c.link.conn.Close() // tells the server
		} else {
			_ = c.input.Close()
			select {
			case <-c.exited:
			case <-time.After(stopTime):
			}
		}
		c.cancel(errStopped)
	})
	<-c.ended
}

// end closes a connection that is broken or was never established, and waits for its
// program.
func (c *conn) end() {
	c.cancel(errStopped)
	if c.link.conn != nil {
		_ = c.link.conn.Close() // nothing can be done about an error
	}
	if c.session != nil {
		_ = c.session.Close() // as above
	}
	if c.exited != nil {
		<-c.exited
	}
}

// kill ends the connection and the program without grace.
func (c *conn) kill() {
	c.cancel(errClosed)
	if c.process != nil {
		c.process.Kill()
	}
}

// broken reports whether the connection has ended or is about to.
func (c *conn) broken() bool {
	if c.ctx.Err() != nil {
		return true
	}
	if c.exited == nil {
		return false
	}
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// explain returns the error of a server for which err was returned. It has the last
// line that the program printed.
func (c *conn) explain(err error) error {
	if why := c.refused.Load(); why != nil {
		return *why
	}
	if login, ok := errors.AsType[loginError](err); ok {
		return login.error
	}
	msg := clean(c.redacted(c.cause(err).Error()), 2*maxLine)
	if line := clean(c.redacted(c.printed.LastLine()), maxLine); line != "" && !strings.Contains(msg, line) {
		msg += fmt.Sprintf(". It printed last: %q", line)
	}
	return fmt.Errorf("MCP server %s: %s", c.name, msg)
}

// cause returns why a connection broke for which err was returned.
func (c *conn) cause(err error) error {
	if c.exited != nil {
		select { // the output ends shortly before the program
		case <-c.exited:
		case <-time.After(exitTime):
		}
	}
	switch {
	case c.stopped.Load():
		return errStopped
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, sdk.ErrConnectionClosed):
		return err
	// a program ends after this process closed the connection
	case c.died() && (c.exit != exitedWell || strings.HasSuffix(err.Error(), "EOF")):
		return errors.New(c.exit)
	case errors.Is(err, sdk.ErrConnectionClosed):
		return err
	}
	return errLost
}

// died reports whether the program ended by itself.
func (c *conn) died() bool {
	if c.exited == nil {
		return false
	}
	select {
	case <-c.exited:
		return c.exit != ""
	default:
		return false
	}
}

func (c *conn) redacted(s string) string {
	if c.redact == nil {
		return s
	}
	return c.redact(s)
}

// call calls a tool.
func (c *conn) call(ctx context.Context, name string, args any, update func(string)) (*sdk.CallToolResult, error) {
	pr := &progress{update: update}
	c.mu.Lock()
	c.last++
	token := strconv.Itoa(c.last)
	c.update[token] = pr
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.update, token)
		c.mu.Unlock()
		pr.end()
	}()
	params := &sdk.CallToolParams{Name: name, Arguments: args}
	params.SetProgressToken(token)
	return c.session.CallTool(ctx, params)
}

// ping reports whether the server answers anything.
func (c *conn) ping() bool {
	ctx, cancel := context.WithTimeout(c.ctx, pingTime)
	defer cancel()
	err := c.session.Ping(ctx, nil)
	return err == nil || !errors.Is(err, context.DeadlineExceeded)
}

// progress passes a progress message on to its call.
func (c *conn) progress(p *sdk.ProgressNotificationParams) {
	token, _ := p.ProgressToken.(string)
	c.mu.Lock()
	pr := c.update[token]
	c.mu.Unlock()
	if pr == nil {
		return
	}
	msg := clean(p.Message, maxLine)
	if msg == "" {
		msg = strconv.FormatFloat(p.Progress, 'g', 4, 64)
		if p.Total > 0 {
			msg += " of " + strconv.FormatFloat(p.Total, 'g', 4, 64)
		}
	}
	pr.send(msg)
}

// progressTime is the time between progress messages of a call that are passed on.
const progressTime = 100 * time.Millisecond

// progress passes on the progress messages of one call.
type progress struct {
	mu     sync.Mutex
	update func(string) // nil: the call has ended
	at     time.Time
}

func (p *progress) send(msg string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.update != nil && now.Sub(p.at) >= progressTime {
		p.at = now
		p.update(msg)
	}
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.update = nil
}
