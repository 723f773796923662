// Package diagnostics collects what helps to understand a fault of an installation, without
// anything that tells what people wrote, who they are, or their keys. It decides by
// structure: only what is known to be harmless is taken.
package diagnostics

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/egress"
	"github.com/chela-ai/chela/internal/kit/logfile"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// Limits of what is collected.
const (
	logLines   = 2000
	maxMetrics = 1 << 20 // bytes
	patience   = 10 * time.Second
)

// Collector implements cli.Diagnostics.
type Collector struct {
	Version string
	// Names are the names of channels and model providers of the build.
	Names []string
	// Counts says what the database contains, in numbers; "": a running process has it.
	Counts func(ctx context.Context, s cli.Start) (string, error)
	// Attach connects to the running engine.
	Attach func(ctx context.Context, s cli.Start) (cli.Engine, error)
	// Local returns the port of the gateway.
	Local func(s cli.Start) (cli.Port, error)
}

var _ cli.Diagnostics = Collector{}

// Export implements cli.Diagnostics.
func (c Collector) Export(ctx context.Context, s cli.Start, found []cli.Finding, out io.Writer) ([]string, error) {
	z := zip.NewWriter(out)
	var names []string
	now := time.Now().UTC().Truncate(time.Second)
	for _, part := range []struct {
		name string
		text func(context.Context, cli.Start) []byte
	}{
		{"README.txt", func(context.Context, cli.Start) []byte { return []byte(readme) }},
		{"version.json", func(context.Context, cli.Start) []byte {
			return indented(map[string]any{
				"version":    c.Version,
				"go":         runtime.Version(),
				"os":         runtime.GOOS,
				"arch":       runtime.GOARCH,
				"processors": runtime.NumCPU(),
				"created":    now,
			})
		}},
		{"doctor.json", func(context.Context, cli.Start) []byte { return indented(checks(found)) }},
		{"config.json", c.config},
		{"counts.json", c.counts},
		{"metrics.txt", c.metrics},
		{"log.jsonl", log},
	} {
		text := part.text(ctx, s)
		if text == nil {
			continue
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: part.name, Method: zip.Deflate, Modified: now})
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(text); err != nil {
			return nil, err
		}
		names = append(names, part.name)
	}
	return names, z.Close()
}

const readme = `Diagnostics of chela, written by chela gateway diagnostics export.

It contains no messages, names, addresses, paths or keys: settings are there by their
names, with the values that are numbers or choices; of the checks of chela doctor, which
of them passed; of the log, times, levels and the fixed texts of the program.
Look through it before you give it to others.
`

func indented(v any) []byte {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil
	}
	return append(b, '\n')
}

// check is a finding without its text, which names paths and accounts.
type check struct {
	Name    string `json:"name"`
	Status  string `json:"status"`
	Fixable bool   `json:"fixable,omitempty"`
}

func checks(found []cli.Finding) []check {
	out := []check{}
	for _, f := range found {
		name := f.Name
		if strings.HasPrefix(name, "plug-in ") { // the name of a plug-in may be that of a person
			name = "plug-in"
		}
		out = append(out, check{name, f.Status, f.Fixable})
	}
	return out
}

// config returns the outline of the configuration.
func (c Collector) config(_ context.Context, s cli.Start) []byte {
	tree, err := config.Options{LastGood: s.LastGood}.Load(s.Config)
	if err != nil {
		return indented(map[string]any{"unreadable": true})
	}
	var v any
	if err := json.Unmarshal(tree.Outline(c.Names), &v); err != nil {
		return nil
	}
	return indented(map[string]any{
		"exists":   tree.Exists(),
		"broken":   tree.Broken() != nil,
		"warnings": len(tree.Warnings()),
		"settings": v,
	})
}

// counts returns what the database contains.
func (c Collector) counts(ctx context.Context, s cli.Start) []byte {
	text, err := c.Counts(ctx, s)
	switch {
	case err != nil:
		return indented(map[string]any{"unreadable": true})
	case text == "":
		return nil // the metrics have it
	}
	out := map[string]any{}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == ',' }) {
		var n int
		var what string
		if _, err := fmt.Sscanf(strings.TrimSpace(part), "%d %s", &n, &what); err == nil {
			_, name, _ := strings.Cut(strings.TrimSpace(part), " ")
			out[name] = n
		}
	}
	return indented(out)
}

// metrics returns the metrics of a running gateway, whose names and labels are fixed. One
// that encrypts is asked for none.
func (c Collector) metrics(ctx context.Context, s cli.Start) []byte {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e, err := c.Attach(ctx, s)
	if err != nil {
		return nil
	}
	if err := e.Close(ctx); err != nil {
		return nil
	}
	port, err := c.Local(s)
	if err != nil {
		return nil
	}
	u, err := url.Parse(port.URL)
	if err != nil || u.Scheme != "ws" {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+u.Host+"/metrics", nil)
	if err != nil {
		return nil
	}
	res, err := egress.Client(egress.Options{Policy: egress.Policy{Hosts: []string{u.Host}}}).Do(req)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxMetrics))
	if err != nil || res.StatusCode != http.StatusOK {
		return nil
	}
	var out []byte
	for line := range bytes.Lines(b) {
		if bytes.HasPrefix(line, []byte("chela_")) { // the port may be that of another program
			out = append(out, line...)
		}
	}
	return out
}

// harmless are the attributes of log lines that are kept if they are numbers or true or
// false.
var harmless = []string{"attempt", "bytes", "code", "count", "entries", "files", "limit", "ms", "n", "sessions", "size",
	"status", "took", "tokens", "tries", "wait"}

// log returns the last lines of the log: the time, the level, the message, which is a fixed
// text of the program, and harmless attributes. Other lines are only counted.
func log(_ context.Context, s cli.Start) []byte {
	var b bytes.Buffer
	other := 0
	t := logfile.NewTail(filepath.Join(s.State, "logs", "chela.log"), func(line []byte) {
		var record map[string]json.RawMessage
		var kept struct {
			Time  time.Time `json:"time"`
			Level string    `json:"level"`
			Msg   string    `json:"msg"`
		}
		if json.Unmarshal(line, &record) != nil || json.Unmarshal(line, &kept) != nil ||
			!slices.Contains([]string{"DEBUG", "INFO", "WARN", "ERROR"}, kept.Level) {
			other++
			return
		}
		out := map[string]any{"time": kept.Time, "level": kept.Level, "msg": kept.Msg}
		for _, name := range harmless {
			var n json.Number
			var yes bool
			switch raw := record[name]; {
			case raw == nil, raw[0] == '"':
			case json.Unmarshal(raw, &n) == nil:
				out[name] = n
			case json.Unmarshal(raw, &yes) == nil:
				out[name] = yes
			}
		}
		if text, err := json.Marshal(out); err == nil {
			b.Write(append(text, '\n'))
		}
	})
	defer t.Close()
	if _, err := t.Last(logLines); err != nil {
		return nil
	}
	if other > 0 {
		fmt.Fprintf(&b, "{\"other\":%d}\n", other)
	}
	return b.Bytes()
}
