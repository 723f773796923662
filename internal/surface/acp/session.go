package acp

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/surface/tui/feed"
	"github.com/chela-ai/chela/wire"
)

// maxPage is the number of sessions in an answer to session/list.
const maxPage = 50

// ListSessions implements sdk.Agent: the conversations of the agent that works in a folder,
// the newest first. The cursor is the number of those that were listed.
func (a *agent) ListSessions(ctx context.Context, r sdk.ListSessionsRequest) (sdk.ListSessionsResponse, error) {
	agents, err := a.agents(ctx)
	if err != nil {
		return sdk.ListSessionsResponse{}, failure(err)
	}
	p := wire.SessionsList{AgentID: a.o.Agent, Limit: maxPage, NoSubagents: true, NoCron: true}
	if r.Cursor != nil {
		if p.Offset, err = strconv.Atoi(*r.Cursor); err != nil || p.Offset < 0 {
			return sdk.ListSessionsResponse{}, invalid("cursor %q is not one of this agent", *r.Cursor)
		}
	}
	if r.Cwd != nil {
		p.AgentID, _ = a.choose(agents, *r.Cwd)
	}
	var list wire.SessionList
	if err := a.o.Client.Repeat(ctx, wire.MethodSessionsList, p, &list); err != nil {
		return sdk.ListSessionsResponse{}, failure(err)
	}
	out := sdk.ListSessionsResponse{Sessions: []sdk.SessionInfo{}}
	for i := range list.Sessions {
		s := &list.Sessions[i]
		info := sdk.SessionInfo{SessionId: sdk.SessionId(s.Key),
			UpdatedAt: sdk.Ptr(s.UpdatedAt.Time().UTC().Format(time.RFC3339))}
		if title := ansi.Line(cmp.Or(s.Label, s.DisplayName, s.Title)); title != "" {
			info.Title = sdk.Ptr(title)
		}
		if r.Cwd != nil {
			info.Cwd = *r.Cwd
		} else if i := slices.IndexFunc(agents.Agents, func(g wire.AgentInfo) bool { return g.ID == s.AgentID }); i >= 0 {
			info.Cwd = agents.Agents[i].Workspace
		}
		out.Sessions = append(out.Sessions, info)
	}
	if list.Next != nil {
		out.NextCursor = sdk.Ptr(strconv.Itoa(*list.Next))
	}
	return out, nil
}

// ResumeSession implements sdk.Agent: it goes on with a session without telling what was
// said.
func (a *agent) ResumeSession(ctx context.Context, r sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	if len(r.McpServers) > 0 {
		return sdk.ResumeSessionResponse{}, errServers
	}
	s, h, err := a.existing(ctx, r.SessionId, 1)
	if err != nil {
		return sdk.ResumeSessionResponse{}, err
	}
	a.announceCommands(ctx, s)
	return sdk.ResumeSessionResponse{ConfigOptions: a.options(ctx, h)}, nil
}

// CloseSession implements sdk.Agent: the editor is told nothing more of the session, and
// what runs there for the editor is stopped.
func (a *agent) CloseSession(ctx context.Context, r sdk.CloseSessionRequest) (sdk.CloseSessionResponse, error) {
	var turns []*turn
	a.mu.Lock()
	if s := a.sessions[r.SessionId]; s != nil {
		turns = slices.Collect(maps.Values(s.turns))
		clear(s.turns)
	}
	delete(a.sessions, r.SessionId)
	a.mu.Unlock()
	if len(turns) == 0 {
		return sdk.CloseSessionResponse{}, nil
	}
	_, err := a.o.Client.Abort(ctx, string(r.SessionId), "")
	for _, t := range turns { // no event of the session reaches them
		t.done <- feed.End{State: wire.StateAborted}
	}
	if err != nil {
		return sdk.CloseSessionResponse{}, failure(err)
	}
	return sdk.CloseSessionResponse{}, nil
}

// The settings of a session.
const (
	modelSetting    = "model"
	thinkingSetting = "thinking"
)

// options returns the settings of a session that the editor can offer: its model, and how
// much that thinks.
func (a *agent) options(ctx context.Context, h wire.History) []sdk.SessionConfigOption {
	var list wire.ModelsList
	if err := a.o.Client.Repeat(ctx, wire.MethodModelsList, wire.ModelsGet{}, &list); err != nil {
		a.o.Log.Debug("models for the editor", "err", err)
		return nil
	}
	provider, model, level := "", "", ""
	var levels []wire.Level
	if d := h.Defaults; d != nil {
		provider, model = d.Provider, d.Model
	}
	if i := h.Info; i != nil {
		provider, model, levels = cmp.Or(i.Provider, provider), cmp.Or(i.Model, model), i.Levels
		level = cmp.Or(i.Thinking, i.Default)
	}
	now := provider + "/" + model
	var models []sdk.SessionConfigSelectOption
	for _, m := range list.Models {
		id := m.Provider + "/" + m.ID
		if id == now && len(levels) == 0 {
			levels, level = m.Levels, cmp.Or(level, m.DefaultLevel)
		}
		if m.Available || id == now {
			models = append(models,
				sdk.SessionConfigSelectOption{Value: sdk.SessionConfigValueId(id), Name: ansi.Line(cmp.Or(m.Name, id))})
		}
	}
	out := choice(modelSetting, "Model", sdk.SessionConfigOptionCategoryModel, now, models)
	if len(levels) > 1 {
		var all []sdk.SessionConfigSelectOption
		for _, l := range levels {
			all = append(all, sdk.SessionConfigSelectOption{Value: sdk.SessionConfigValueId(l.ID), Name: cmp.Or(l.Label, l.ID)})
		}
		out = append(out, choice(thinkingSetting, "Thinking", sdk.SessionConfigOptionCategoryThoughtLevel,
			cmp.Or(level, levels[0].ID), all)...)
	}
	return out
}

// choice returns a setting with its values; none: the present value is not among them.
func choice(id sdk.SessionConfigId, name string, category sdk.SessionConfigOptionCategory, now string,
	values []sdk.SessionConfigSelectOption) []sdk.SessionConfigOption {
	if !slices.ContainsFunc(values, func(v sdk.SessionConfigSelectOption) bool { return string(v.Value) == now }) {
		return nil
	}
	all := sdk.SessionConfigSelectOptionsUngrouped(values)
	return []sdk.SessionConfigOption{{Select: &sdk.SessionConfigOptionSelect{
		Id: id, Name: name, Category: &category, CurrentValue: sdk.SessionConfigValueId(now), Type: "select",
		Options: sdk.SessionConfigSelectOptions{Ungrouped: &all},
	}}}
}

// SetSessionConfigOption implements sdk.Agent.
func (a *agent) SetSessionConfigOption(ctx context.Context,
	r sdk.SetSessionConfigOptionRequest) (sdk.SetSessionConfigOptionResponse, error) {
	var none sdk.SetSessionConfigOptionResponse
	v := r.ValueId
	if v == nil {
		return none, invalid("the settings are %s and %s, which are texts", modelSetting, thinkingSetting)
	}
	in := wire.SessionsCreate{Key: string(v.SessionId)} // it need not have a message yet
	switch v.ConfigId {
	case modelSetting:
		in.Model = string(v.Value)
	case thinkingSetting:
		in.Thinking = string(v.Value)
	default:
		return none, invalid("there is no setting %q; there are %s and %s", v.ConfigId, modelSetting, thinkingSetting)
	}
	if err := a.o.Client.Repeat(ctx, wire.MethodSessionsCreate, in, nil); err != nil {
		return none, failure(err)
	}
	h, err := a.o.Client.History(ctx, in.Key, 1)
	if err != nil {
		return none, failure(err)
	}
	return sdk.SetSessionConfigOptionResponse{ConfigOptions: append([]sdk.SessionConfigOption{}, a.options(ctx, h)...)},
		nil
}

// learnTools remembers what kinds of tools an agent has.
func (a *agent) learnTools(ctx context.Context, id string) {
	var c wire.ToolsCatalog
	if err := a.o.Client.Repeat(ctx, wire.MethodToolsCatalog, wire.ToolsGet{AgentID: id}, &c); err != nil {
		a.o.Log.Debug("tools for the editor", "err", err)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, g := range c.Groups {
		for _, t := range g.Tools {
			a.kinds[t.ID] = kinds[t.Risk]
		}
	}
}

// kinds are the kinds of tools by their risk.
var kinds = map[string]sdk.ToolKind{"low": sdk.ToolKindRead, "medium": sdk.ToolKindEdit, "high": sdk.ToolKindExecute}
