// Package logs implements the method that reads the gateway's log.
package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/logfile"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Options configures the method.
type Options struct {
	Path string // of the log file
}

// Maximum and default limits.
const (
	maxLines, defaultLines = 5000, 500
	maxBytes, defaultBytes = 1_000_000, 250_000
)

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	return []rpc.Method{
		rpc.New(wire.MethodLogsTail, wire.RoleOperator, chela.ScopeRead,
			func(_ context.Context, _ rpc.Peer, p wire.LogsTail) (wire.LogTail, error) {
				return o.tail(p)
			}),
	}
}

// tail returns the complete lines after the cursor, or the newest ones. A
// cursor beyond the end belongs to a rotated file.
func (o Options) tail(p wire.LogsTail) (wire.LogTail, error) {
	out := wire.LogTail{File: o.Path, Lines: []string{}}
	f, err := os.Open(o.Path)
	if errors.Is(err, os.ErrNotExist) {
		out.Reset = p.Cursor != nil && *p.Cursor > 0
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("log: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return out, fmt.Errorf("log: %w", err)
	}
	out.Size = info.Size()
	limit := int64(rpc.Limit(p.MaxBytes, defaultBytes, maxBytes))
	begin := max(0, out.Size-limit)
	switch {
	case p.Cursor == nil:
		out.Truncated = begin > 0
	case *p.Cursor < 0 || *p.Cursor > out.Size:
		out.Reset, out.Truncated = true, begin > 0
	case *p.Cursor < begin:
		out.Truncated = true
	default:
		begin = *p.Cursor
	}
	b, err := io.ReadAll(io.NewSectionReader(f, begin, out.Size-begin))
	if err != nil {
		return out, fmt.Errorf("log: %w", err)
	}
	end := bytes.LastIndexByte(b, '\n') + 1 // what follows is incomplete
	out.Cursor = begin + int64(end)
	b = b[:end]
	if out.Truncated {
		_, b, _ = bytes.Cut(b, []byte("\n")) // the first line is incomplete
	}
	for line := range bytes.Lines(b) {
		out.Lines = append(out.Lines, shown(bytes.TrimSuffix(line, []byte("\n"))))
	}
	if n := len(out.Lines) - rpc.Limit(p.Limit, defaultLines, maxLines); n > 0 {
		out.Lines, out.Truncated = out.Lines[n:], true
	}
	return out, nil
}

// shown returns a line with an additional property message, the text that
// clients display: the message and the attributes.
func shown(line []byte) string {
	l, ok := logfile.Parse(line)
	if !ok {
		return string(line)
	}
	b, err := wire.Encode(strings.TrimSpace(l.Message + " " + l.Attrs))
	if err != nil {
		return string(line)
	}
	return `{"message":` + string(b) + "," + string(line[1:])
}
