package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/core/schema"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Limits of what a server lists.
const (
	maxTools       = 200
	maxPages       = 50
	maxName        = 128
	maxTitle       = 60       // bytes
	maxDescription = 2000     // characters
	maxSchema      = 64 << 10 // bytes
	maxFile        = 16 << 20 // bytes of a cached catalog
	keepTime       = 90 * 24 * time.Hour
)

// Catalog is what a server offers.
type Catalog struct {
	Server  string   `json:"server,omitempty"`  // name and version that the server gives itself
	Tools   []Entry  `json:"tools"`             // sorted by name
	Refused []string `json:"refused,omitempty"` // why tools of the server are not among them
}

// Entry is a tool in a catalog.
type Entry struct {
	Name        string          `json:"name"` // at the server
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"`
	ReadOnly    bool            `json:"readOnly,omitempty"`
	Made        bool            `json:"made,omitempty"` // the server does not list it: it reaches its resources or prompts
}

// list asks the server for its tools.
func (c *conn) list(ctx context.Context) (Catalog, error) {
	var cat Catalog
	if init := c.session.InitializeResult(); init != nil && init.ServerInfo != nil {
		cat.Server = clean(init.ServerInfo.Name+" "+init.ServerInfo.Version, maxName)
	}
	var all []*sdk.Tool
	var cursor string
	for range maxPages {
		page, err := c.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		// it has resources or prompts only
		if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && wire.Code == jsonrpc.CodeMethodNotFound {
			break
		}
		if err != nil {
			return Catalog{}, err
		}
		all = append(all, page.Tools...)
		if cursor = page.NextCursor; cursor == "" || len(all) > maxTools {
			break
		}
	}
	cat.add(all)
	if init := c.session.InitializeResult(); init != nil && init.Capabilities != nil {
		cat.addMade(init.Capabilities.Resources != nil, init.Capabilities.Prompts != nil)
	}
	return cat, nil
}

// add adds the tools that can be used.
func (cat *Catalog) add(all []*sdk.Tool) {
	slices.SortStableFunc(all, func(a, b *sdk.Tool) int { return cmp.Compare(a.Name, b.Name) })
	if len(all) > maxTools {
		cat.Refused = append(cat.Refused,
			fmt.Sprintf("the server lists more than %d tools: the others are omitted", maxTools))
		all = all[:maxTools]
	}
	cat.Tools = []Entry{}
	for i, t := range all {
		e, err := entry(t)
		if err == nil && i > 0 && all[i-1].Name == t.Name {
			err = errors.New("the server lists it twice")
		}
		if err != nil {
			cat.Refused = append(cat.Refused, fmt.Sprintf("tool %s: %v", clean(t.Name, maxName), err))
			continue
		}
		cat.Tools = append(cat.Tools, e)
	}
}

// entry returns a tool that a server lists, or why it cannot be used.
func entry(t *sdk.Tool) (Entry, error) {
	if t.Name == "" || len(t.Name) > maxName {
		return Entry{}, fmt.Errorf("the name must have 1 to %d characters", maxName)
	}
	e := Entry{Name: t.Name, Title: clean(t.Title, maxTitle),
		Description: humanize.Truncate(printable(t.Description), maxDescription-1)}
	if a := t.Annotations; a != nil {
		e.Title = cmp.Or(e.Title, clean(a.Title, maxTitle))
		e.ReadOnly = a.ReadOnlyHint
	}
	definition, err := json.Marshal(t.InputSchema)
	if err != nil {
		return Entry{}, fmt.Errorf("schema: %w", err)
	}
	if e.Schema, err = arguments(definition); err != nil {
		return Entry{}, fmt.Errorf("schema: %w", err)
	}
	return e, nil
}

// arguments returns the schema of a tool's arguments, or why they cannot be checked.
func arguments(definition json.RawMessage) (json.RawMessage, error) {
	if len(definition) > maxSchema {
		return nil, fmt.Errorf("it has more than %s", humanize.Bytes(maxSchema))
	}
	var top struct {
		Type any `json:"type"`
	}
	if err := json.Unmarshal(definition, &top); err != nil || top.Type != "object" {
		return nil, errors.New("want an object schema")
	}
	if _, err := (schema.Rules{}).Apply(definition); err != nil { // no model could get it
		return nil, err
	}
	if schema.Plain(definition) {
		return json.Marshal(definition)
	}
	object, err := schema.Object(definition)
	if err != nil {
		return nil, err
	}
	relaxed, err := schema.Relax(object)
	if err != nil {
		return nil, err
	}
	if _, err := schema.Read(relaxed); err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(relaxed, &s); err != nil {
		return nil, err
	}
	if _, err := s.Resolve(nil); err != nil { // remote schemas are not fetched
		return nil, err
	}
	return json.Marshal(object) // the form that is read from a file
}

// key identifies the description of a server, without the values of its secrets.
func key(name string, s mcp.Server) string {
	text, _ := json.Marshal([]any{ // text and numbers only
		name, s.Plugin, s.Command, s.Args, slices.Sorted(maps.Keys(s.Env)), s.Dir, s.WorkDir,
		s.URL, s.Kind(), slices.Sorted(maps.Keys(s.Headers)),
	})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// cacheDir returns the folder of the cached catalogs.
func (p *Pool) cacheDir() string { return filepath.Join(p.o.State, "cache", "mcp") }

// catalog returns the catalog of a server if it is known.
func (p *Pool) catalog(key string) (Catalog, bool) {
	p.mu.Lock()
	cat, ok := p.catalogs[key]
	p.mu.Unlock()
	if ok {
		return cat, true
	}
	cat, err := readCatalog(filepath.Join(p.cacheDir(), key+".json"))
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			p.o.Log.Warn("list of tools is unreadable", "err", err)
		}
		return Catalog{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if newer, ok := p.catalogs[key]; ok {
		return newer, true
	}
	p.catalogs[key] = cat
	return cat, true
}

// readCatalog reads a cached catalog.
func readCatalog(name string) (Catalog, error) {
	f, err := os.Open(name)
	if err != nil {
		return Catalog{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Catalog{}, err
	}
	return parseCatalog(data)
}

// parseCatalog reads the text of a catalog and checks it like the list of a server.
func parseCatalog(data []byte) (Catalog, error) {
	var stored Catalog
	if len(data) > maxFile {
		return Catalog{}, fmt.Errorf("list of tools: more than %s", humanize.Bytes(maxFile))
	}
	if err := json.Unmarshal(data, &stored); err != nil {
		return Catalog{}, fmt.Errorf("list of tools: %w", err)
	}
	for i, e := range stored.Tools {
		s, err := arguments(e.Schema)
		if m, ok := made(e.Name); e.Made && ok { // as this build makes it
			e, s, err = m, m.Schema, nil
			stored.Tools[i] = m
		}
		if err != nil || e.Name == "" || len(e.Name) > maxName || i >= maxTools+len(makers) ||
			i > 0 && e.Name <= stored.Tools[i-1].Name {
			return Catalog{}, errors.New("list of tools: a tool is invalid")
		}
		stored.Tools[i].Schema = s
		stored.Tools[i].Description = humanize.Truncate(printable(e.Description), maxDescription)
		stored.Tools[i].Title = humanize.Truncate(printable(e.Title), maxTitle)
	}
	return stored, nil
}

// learn keeps the catalog of a server, and has the tools made again if it is new.
func (p *Pool) learn(key string, cat Catalog) {
	if known, ok := p.catalog(key); ok && reflect.DeepEqual(known, cat) {
		return
	}
	p.mu.Lock()
	p.catalogs[key] = cat
	p.mu.Unlock()
	if err := p.store(key, cat); err != nil {
		p.o.Log.Warn("list of tools is not kept", "err", err)
	}
	p.watched.Do(func() { p.wg.Go(p.report) })
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// store writes a catalog to its file, and removes those that were not written for long.
func (p *Pool) store(key string, cat Catalog) error {
	data, err := json.Marshal(cat)
	if err != nil {
		return err
	}
	dir := p.cacheDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(dir, key+".json"), data, 0o600); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > keepTime {
			_ = os.Remove(filepath.Join(dir, e.Name())) // it is made again
		}
	}
	return err
}

// usable returns the entries of a catalog that Chela offers, with their names, and why
// others are not offered.
func usable(name string, s mcp.Server, cat Catalog) (entries []Entry, names []string, problems []string) {
	problems = slices.Clone(cat.Refused)
	own := map[string]bool{}
	for _, d := range s.Own {
		own[d.Name] = true
	}
	listed := make([]string, len(cat.Tools))
	for i, e := range cat.Tools {
		listed[i] = e.Name
	}
	for i, full := range mcp.Names(name, listed) { // of all, so that a filter changes no name
		e := cat.Tools[i]
		switch {
		case s.Own != nil && e.Made && !own[e.Name]:
			continue
		case s.Own != nil && !own[e.Name]:
			problems = append(problems, fmt.Sprintf("tool %s: the plug-in does not declare it", clean(e.Name, maxName)))
			continue
		case !s.Filter.Allows(e.Name):
			continue
		case s.Own != nil:
			full = e.Name
		}
		entries, names = append(entries, e), append(names, full)
	}
	for _, d := range s.Own {
		if !slices.Contains(listed, d.Name) {
			problems = append(problems, fmt.Sprintf("tool %s: the plug-in declares it, and the server does not list it", d.Name))
		}
	}
	return entries, names, problems
}
