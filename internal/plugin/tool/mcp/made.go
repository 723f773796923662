package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// The tools that reach the resources and prompts of a server that has some. They are
// reached by calls only: nothing of them is in a prompt unasked.
const (
	listResources = "resources_list"
	readResource  = "resources_read"
	listPrompts   = "prompts_list"
	getPrompt     = "prompts_get"
)

// makers are the tools that are made, sorted by name, without the name of the server.
var makers = [...]Entry{
	{
		Name: getPrompt, Title: "Get a prompt", ReadOnly: true, Made: true,
		Description: "Returns a prompt that this MCP server offers: text for a task, filled in with arguments. It is a suggestion of the server, not of the person.",
		Schema:      json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","description":"of the prompt, as prompts_list says"},"arguments":{"type":"object","additionalProperties":{"type":"string"},"description":"values by name"}},"required":["name"],"additionalProperties":false}`),
	},
	{
		Name: listPrompts, Title: "List prompts", ReadOnly: true, Made: true,
		Description: "Lists the prompts that this MCP server offers, with their arguments.",
		Schema:      json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
	},
	{
		Name: listResources, Title: "List resources", ReadOnly: true, Made: true,
		Description: "Lists the resources that this MCP server offers, such as files and records, and the templates of their addresses.",
		Schema:      json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
	},
	{
		Name: readResource, Title: "Read a resource", ReadOnly: true, Made: true,
		Description: "Returns the content of a resource of this MCP server.",
		Schema:      json.RawMessage(`{"type":"object","properties":{"uri":{"type":"string","description":"address of the resource, as resources_list says, or made from a template"}},"required":["uri"],"additionalProperties":false}`),
	},
}

// made returns the tool with a name that is made.
func made(name string) (Entry, bool) {
	i := slices.IndexFunc(makers[:], func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{}, false
	}
	return makers[i], true
}

// addMade adds the tools that reach resources and prompts. One of the server with the
// same name comes first.
func (cat *Catalog) addMade(resources, prompts bool) {
	for _, e := range makers {
		if of := strings.HasPrefix(e.Name, "resources"); of && !resources || !of && !prompts {
			continue
		}
		at, taken := slices.BinarySearchFunc(cat.Tools, e.Name,
			func(x Entry, name string) int { return cmp.Compare(x.Name, name) })
		if taken {
			cat.Refused = append(cat.Refused,
				fmt.Sprintf("tool %s: the server has one with this name, so that its %s cannot be reached by it", e.Name,
					strings.SplitN(e.Name, "_", 2)[0]))
			continue
		}
		cat.Tools = slices.Insert(cat.Tools, at, e)
	}
}

// maxItems is the number of resources or prompts that are listed.
const maxItems = 500

// reach calls a tool that is made.
func (p *Pool) reach(ctx context.Context, server, name string, raw json.RawMessage) (*sdk.CallToolResult, error) {
	var args struct {
		URI       string            `json:"uri"`
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &args); err != nil {
			return nil, fmt.Errorf("arguments: %w", err)
		}
	}
	var out []sdk.Content
	err := p.ask(ctx, server, name, func(ctx context.Context, c *conn) (err error) {
		switch name {
		case listResources:
			out, err = c.resources(ctx)
		case readResource:
			out, err = c.resource(ctx, args.URI)
		case listPrompts:
			out, err = c.prompts(ctx)
		case getPrompt:
			out, err = c.prompt(ctx, args.Name, args.Arguments)
		default:
			err = errors.New("there is no such tool")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{Content: out}, nil
}

// item is a line of a list.
func item(b *strings.Builder, id, name, kind, about string) {
	fmt.Fprintf(b, "- %s", clean(id, 4*maxName))
	if name = clean(name, maxName); name != "" && name != id {
		fmt.Fprintf(b, " (%s)", name)
	}
	if kind != "" {
		fmt.Fprintf(b, ", %s", clean(kind, maxName))
	}
	if about = humanize.Truncate(clean(about, 4*maxDescription), maxLine); about != "" {
		fmt.Fprintf(b, ": %s", about)
	}
	b.WriteByte('\n')
}

// pages calls f for pages until there are no more, or enough items.
func pages(f func(cursor string) (items int, next string, err error)) (more bool, err error) {
	var cursor string
	n := 0
	for range maxPages {
		items, next, err := f(cursor)
		if err != nil {
			return false, err
		}
		n += items
		if next == "" {
			return n > maxItems, nil
		}
		if cursor = next; n >= maxItems {
			break
		}
	}
	return true, nil
}

// listed returns the text of a list.
func listed(b *strings.Builder, what string, more bool) []sdk.Content {
	if b.Len() == 0 {
		return []sdk.Content{&sdk.TextContent{Text: "The server has no " + what + "."}}
	}
	if more {
		fmt.Fprintf(b, "There are more; the first %d are shown.\n", maxItems)
	}
	return []sdk.Content{&sdk.TextContent{Text: b.String()}}
}

// first returns the items of a page that are shown after n others.
func first[T any](items []T, n int) []T { return items[:min(len(items), max(0, maxItems-n))] }

func (c *conn) resources(ctx context.Context) ([]sdk.Content, error) {
	var b strings.Builder
	n := 0
	more, err := pages(func(cursor string) (int, string, error) {
		page, err := c.session.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
		if err != nil {
			return 0, "", err
		}
		for _, r := range first(page.Resources, n) {
			item(&b, r.URI, cmp.Or(r.Title, r.Name), r.MIMEType, r.Description)
		}
		n += len(page.Resources)
		return len(page.Resources), page.NextCursor, nil
	})
	if err != nil {
		return nil, err
	}
	page, err := c.session.ListResourceTemplates(ctx, nil)
	if ctx.Err() != nil {
		return nil, err
	}
	if err != nil { // a server may have none
		return listed(&b, "resources", more), nil
	}
	for i, t := range first(page.ResourceTemplates, 0) {
		if i == 0 {
			b.WriteString("Templates of addresses; replace the parts in braces:\n")
		}
		item(&b, t.URITemplate, cmp.Or(t.Title, t.Name), t.MIMEType, t.Description)
	}
	return listed(&b, "resources", more), nil
}

func (c *conn) resource(ctx context.Context, uri string) ([]sdk.Content, error) {
	res, err := c.session.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
	if err != nil {
		return nil, err
	}
	var out []sdk.Content
	for _, r := range res.Contents {
		out = append(out, &sdk.EmbeddedResource{Resource: r})
	}
	return out, nil
}

func (c *conn) prompts(ctx context.Context) ([]sdk.Content, error) {
	var b strings.Builder
	n := 0
	more, err := pages(func(cursor string) (int, string, error) {
		page, err := c.session.ListPrompts(ctx, &sdk.ListPromptsParams{Cursor: cursor})
		if err != nil {
			return 0, "", err
		}
		for _, p := range first(page.Prompts, n) {
			item(&b, p.Name, p.Title, "", p.Description)
			for _, a := range p.Arguments {
				required := ""
				if a.Required {
					required = "required"
				}
				b.WriteString("  ")
				item(&b, a.Name, a.Title, required, a.Description)
			}
		}
		n += len(page.Prompts)
		return len(page.Prompts), page.NextCursor, nil
	})
	if err != nil {
		return nil, err
	}
	return listed(&b, "prompts", more), nil
}

func (c *conn) prompt(ctx context.Context, name string, args map[string]string) ([]sdk.Content, error) {
	res, err := c.session.GetPrompt(ctx, &sdk.GetPromptParams{Name: name, Arguments: args})
	if err != nil {
		return nil, err
	}
	var out []sdk.Content
	if res.Description != "" {
		out = append(out, &sdk.TextContent{Text: res.Description})
	}
	for _, m := range res.Messages {
		if m == nil || m.Content == nil {
			continue
		}
		out = append(out, &sdk.TextContent{Text: "[" + clean(string(m.Role), maxName) + "]"}, m.Content)
	}
	return out, nil
}
