package agents

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

func (m methods) files(_ context.Context, _ rpc.Peer, in wire.AgentID) (wire.AgentFiles, error) {
	a, err := m.find(in.ID, "")
	if err != nil {
		return wire.AgentFiles{}, err
	}
	out := wire.AgentFiles{AgentID: string(a.ID), Workspace: a.Files.Dir(), Files: []wire.AgentFile{}}
	for _, name := range prompt.Names() {
		info, err := a.Files.Stat(name)
		if err != nil { // unreadable files are shown as missing
			info = prompt.Info{Name: name, Missing: true}
		}
		out.Files = append(out.Files, file(a, info))
	}
	return out, nil
}

func (m methods) file(_ context.Context, _ rpc.Peer, in wire.AgentFileGet) (wire.AgentFileGot, error) {
	a, err := m.named(in.AgentID, in.Name)
	if err != nil {
		return wire.AgentFileGot{}, err
	}
	info, text, err := a.Files.Read(in.Name)
	if err != nil {
		return wire.AgentFileGot{}, err
	}
	out := wire.AgentFileGot{AgentID: string(a.ID), Workspace: a.Files.Dir(), File: file(a, info)}
	if !info.Missing {
		out.File.Content = &text
	}
	return out, nil
}

func (m methods) write(_ context.Context, _ rpc.Peer, in wire.AgentFileSet) (wire.AgentFileWritten, error) {
	a, err := m.named(in.AgentID, in.Name)
	if err != nil {
		return wire.AgentFileWritten{}, err
	}
	info, err := a.Files.Write(in.Name, in.Content, strings.ToLower(in.Hash))
	if e, ok := errors.AsType[*prompt.ChangedError](err); ok {
		return wire.AgentFileWritten{}, wire.Errorf(wire.InvalidRequest, "%v", e).With(map[string]any{
			"type": "agent_file_conflict", "name": e.Name, "currentHash": e.Hash,
		})
	}
	if err != nil {
		return wire.AgentFileWritten{}, err
	}
	out := wire.AgentFileWritten{OK: true, AgentID: string(a.ID), Workspace: a.Files.Dir(), File: file(a, info)}
	out.File.Content = &in.Content
	return out, nil
}

// named returns the agent whose file is requested. Only the files of the system
// prompt are accepted, by name.
func (m methods) named(id, name string) (Agent, error) {
	if !slices.Contains(prompt.Names(), name) {
		return Agent{}, rpc.Invalid("unsupported file %q", name)
	}
	return m.find(id, "")
}

// file returns a file of the agent's workspace.
func file(a Agent, i prompt.Info) wire.AgentFile {
	return wire.AgentFile{
		Name: i.Name, Path: filepath.Join(a.Files.Dir(), i.Name), Missing: i.Missing, Expected: i.Missing && i.Optional,
		Size: i.Size, UpdatedAt: wire.At(i.Changed), Hash: i.Hash,
	}
}
