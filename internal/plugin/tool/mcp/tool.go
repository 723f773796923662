package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/untrusted"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Bundle is the plug-in that the tools of servers in the configuration belong to.
const Bundle = policy.MCP

// Limits of a result.
const (
	maxText       = 40_000    // characters
	maxImages     = 8         // images
	maxImageBytes = 12 << 20  // bytes of all images
	maxDetails    = 256 << 10 // bytes of structured content
)

// note is what a model is told about a result.
const note = "The result of a tool of another program: " + untrusted.Data

// remote is a tool of a server.
type remote struct {
	pool   *Pool
	server string
	name   string // at the server
	made   bool   // the server does not list it
	spec   tool.Spec
}

// newTool returns the tool for an entry of a catalog.
func (p *Pool) newTool(server string, s mcp.Server, e Entry, name string) remote {
	t := remote{pool: p, server: server, name: e.Name, made: e.Made, spec: tool.Spec{
		Name: name, Label: cmp.Or(e.Title, e.Name), Description: cmp.Or(e.Description, e.Title), Schema: e.Schema,
		Effect: tool.Acts, Parallel: s.Parallel, Plugin: cmp.Or(s.Plugin, Bundle),
		Optional: slices.Contains(s.Own, mcp.Declared{Name: e.Name, Optional: true}),
	}}
	if e.ReadOnly { // the person chose the server
		t.spec.Effect = tool.Reads
	}
	return t
}

// Spec implements tool.Tool.
func (t remote) Spec() tool.Spec { return t.spec }

// Run implements tool.Tool.
func (t remote) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	call := func() (*sdk.CallToolResult, error) {
		return t.pool.call(ctx, t.server, t.name, json.RawMessage(c.Args), c.Update)
	}
	if t.made {
		call = func() (*sdk.CallToolResult, error) { return t.pool.reach(ctx, t.server, t.name, c.Args) }
	}
	res, err := call()
	if err != nil {
		return tool.Result{}, err
	}
	return t.result(res), nil
}

// rejected is the code of errors of the library about a request that was not answered.
const rejected = -32005

// call calls a tool of a server.
func (p *Pool) call(ctx context.Context, server, name string, args json.RawMessage,
	update func(string)) (*sdk.CallToolResult, error) {
	var res *sdk.CallToolResult
	err := p.ask(ctx, server, clean(name, maxName), func(ctx context.Context, c *conn) (err error) {
		res, err = c.call(ctx, name, args, update)
		return err
	})
	if err == nil && res.NeedsInput() {
		return nil, fmt.Errorf("MCP server %s: the tool asks for input, which is not supported", server)
	}
	return res, err
}

// ask has f ask a server for something, with its time limit. what is the name of it.
func (p *Pool) ask(ctx context.Context, server, what string, f func(context.Context, *conn) error) error {
	p.mu.Lock()
	s := p.servers[server]
	p.mu.Unlock()
	if s == nil {
		return fmt.Errorf("MCP server %s is not configured any more", server)
	}
	c, limit, err := p.acquire(ctx, s)
	if err != nil {
		return err
	}
	defer func() {
		p.mu.Lock()
		s.called = time.Now()
		p.mu.Unlock()
		p.release(s)
	}()
	late := fmt.Errorf("MCP server %s: %s did not answer within %v", server, what, limit)
	timed, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	err = f(timed, c)
	wire, isWire := errors.AsType[*jsonrpc.Error](err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case timed.Err() != nil:
		p.check(c)
		return late
	case isWire && wire.Code != rejected:
		return fmt.Errorf("MCP server %s: %q", server, clean(c.redacted(wire.Message), 2*maxLine))
	}
	return c.explain(err)
}

// details are the details of a result, for clients.
type details struct {
	Server     string   `json:"server"`
	Tool       string   `json:"tool"`
	External   external `json:"externalContent"`
	Truncated  bool     `json:"truncated,omitempty"`
	Structured any      `json:"structuredContent,omitempty"`
}

// external describes the origin of text.
type external struct {
	Untrusted bool   `json:"untrusted"`
	Source    string `json:"source"`
	Wrapped   bool   `json:"wrapped"`
}

// result returns the result for the model.
func (t remote) result(res *sdk.CallToolResult) tool.Result {
	b := builder{}
	for _, c := range res.Content {
		b.add(c)
	}
	structured, err := json.Marshal(res.StructuredContent)
	if err == nil && res.StructuredContent != nil && b.text.Len() == 0 {
		b.write(string(structured))
	}
	d := details{Server: t.server, Tool: t.name, External: external{Untrusted: true, Source: "mcp", Wrapped: true}}
	if err == nil && len(structured) <= maxDetails {
		d.Structured = res.StructuredContent
	}
	body, head := strings.TrimSpace(strings.ToValidUTF8(b.text.String(), "\uFFFD")), ""
	if n := utf8.RuneCountInString(body); n > maxText {
		body, d.Truncated = humanize.Truncate(body, maxText), true
		head = fmt.Sprintf("The result is too long. Only its beginning is shown, %d characters.\n",
			utf8.RuneCountInString(body))
	}
	switch {
	case body != "":
		head += t.pool.o.Label.Wrap("MCP server "+t.server, note, body)
	case len(b.images) == 0:
		head = "The tool returned nothing."
	}
	r := tool.Detailed(head, d)
	if head == "" {
		r.Content = nil
	}
	r.Content = append(r.Content, b.images...)
	r.IsError = res.IsError
	return r
}

// builder collects the content of a result.
type builder struct {
	text   strings.Builder
	images []llm.Part
	bytes  int // of the images
}

// write adds a paragraph.
func (b *builder) write(s string) {
	if s = strings.TrimSpace(s); s == "" {
		return
	}
	if b.text.Len() > 0 {
		b.text.WriteString("\n\n")
	}
	b.text.WriteString(s)
}

// add adds one piece of content.
func (b *builder) add(content sdk.Content) {
	switch c := content.(type) {
	case *sdk.TextContent:
		b.write(c.Text)
	case *sdk.ImageContent:
		b.image(c.MIMEType, c.Data)
	case *sdk.AudioContent:
		b.write(fmt.Sprintf("[audio, %s, %s: not supported]", clean(c.MIMEType, maxName), humanize.Bytes(int64(len(c.Data)))))
	case *sdk.ResourceLink:
		b.write(strings.TrimSpace(fmt.Sprintf("[resource %s] %s %s", c.URI, cmp.Or(c.Title, c.Name), c.Description)))
	case *sdk.EmbeddedResource:
		b.resource(c.Resource)
	}
}

// resource adds the content of a resource.
func (b *builder) resource(r *sdk.ResourceContents) {
	switch {
	case r == nil:
	case len(r.Blob) == 0:
		b.write("[resource " + r.URI + "]\n" + r.Text)
	case strings.HasPrefix(r.MIMEType, "image/"):
		b.image(r.MIMEType, r.Blob)
	default:
		b.write(fmt.Sprintf("[resource %s, %s, %s: not shown]", r.URI, clean(r.MIMEType, maxName),
			humanize.Bytes(int64(len(r.Blob)))))
	}
}

// image adds an image if models accept it.
func (b *builder) image(claimed string, data []byte) {
	kind, err := media.DetectType(data, "", claimed)
	switch {
	case err != nil:
	case !slices.Contains([]string{media.PNG, media.JPEG, media.GIF, media.WebP}, kind):
		err = errors.New("its type is not supported")
	case len(b.images) == maxImages:
		err = fmt.Errorf("a result has at most %d images", maxImages)
	case b.bytes+len(data) > maxImageBytes:
		err = fmt.Errorf("the images of a result have at most %s", humanize.Bytes(maxImageBytes))
	}
	if err != nil {
		b.write(fmt.Sprintf("[image, %s, %s: not shown: %v]", clean(claimed, maxName), humanize.Bytes(int64(len(data))), err))
		return
	}
	b.bytes += len(data)
	b.images = append(b.images, llm.Image(kind, data))
}
