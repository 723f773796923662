package sessions

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
)

//go:embed search.md
var searchDescription string

type searchTool struct{ ReadOptions }

func (t searchTool) Spec() tool.Spec {
	return tool.Spec{
		Name:        "sessions_search",
		Label:       "Search sessions",
		Description: strings.TrimSpace(searchDescription),
		Effect:      tool.Reads,
		Parallel:    true,
		Groups:      []string{"group:sessions"},
		Sandboxed:   tool.Inside,
		Subagents:   tool.Parents,
		Schema: json.RawMessage(`{"type":"object","required":["query"],"properties":{
			"query":{"type":"string","minLength":1,"maxLength":1000},
			"sessionKey":{"type":"string"},
			"label":{"type":"string"},"agentId":{"type":"string"},
			"limit":{"type":"integer","minimum":1,"maximum":25,"description":"default 10"}},
			"additionalProperties":false}`),
	}
}

type searchArgs struct {
	Query string `json:"query"`
	Key   string `json:"sessionKey"`
	Label string `json:"label"`
	Agent string `json:"agentId"`
	Limit int    `json:"limit"`
}

// found is a message that was found.
type found struct {
	Session chela.SessionKey `json:"sessionKey"`
	Role    string           `json:"role"`
	Text    string           `json:"text"`
	Time    time.Time        `json:"time"`
}

const defaultFound = 10

func (t searchTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	a, err := tool.Decode[searchArgs](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	out := struct {
		Count     int     `json:"count"`
		Messages  []found `json:"messages"`
		Truncated bool    `json:"truncated,omitempty"` // there may be more
	}{Messages: []found{}}
	find := session.Search{Query: a.Query, Limit: cmp.Or(a.Limit, defaultFound), Redact: t.redact}
	err = t.Store.View(ctx, func(r store.Reader) error {
		metas, more, err := t.searched(r.Sessions(), c.Session, a)
		if err != nil {
			return err
		}
		hits, truncated, err := find.In(ctx, r.Sessions(), metas)
		out.Messages, out.Truncated = out.Messages[:0], more || truncated
		for _, h := range hits {
			out.Messages = append(out.Messages, found{h.Key, string(h.Role), h.Snippet, h.Time})
		}
		return err
	})
	if err != nil {
		return tool.Result{}, err
	}
	out.Count = len(out.Messages)
	return encoded(out)
}

// searched returns the sessions to search, newest first, and whether some were left out.
func (t searchTool) searched(r session.Reader, viewer chela.SessionKey,
	a searchArgs) (metas []session.Meta, more bool, err error) {
	self, err := session.Lookup(r, viewer)
	if err != nil {
		return nil, false, err
	}
	sharing := t.Sharing(self)
	if a.Key != "" {
		key, err := chela.ParseSessionKey(a.Key, self.Agent)
		if err != nil {
			return nil, false, err
		}
		m, err := sharing.Find(r, self, key)
		return []session.Meta{m}, false, err
	}
	all, n, err := r.List(session.Query{Agent: chela.AgentID(a.Agent), Label: a.Label, Archived: session.ArchivedToo,
		Limit: maxScanned})
	if err != nil {
		return nil, false, err
	}
	more = n > len(all)
	for _, m := range all {
		ok, err := sharing.Sees(r, self, m)
		if err != nil {
			return nil, false, err
		}
		if ok && len(metas) == session.MaxSearched {
			return metas, true, nil
		}
		if ok {
			metas = append(metas, m)
		}
	}
	return metas, more, nil
}
