package llmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/llm/wiretest"
)

// Validate reports what is wrong with a request before any dialect saw it: the
// promises of session.Compile, and tools in order. Every provider accepts a
// request without an error here.
func Validate(r *llm.Request) error {
	if r.Model == "" {
		return errors.New("no model")
	}
	for i, t := range r.Tools {
		if t.Name == "" || i > 0 && r.Tools[i-1].Name >= t.Name {
			return fmt.Errorf("tool %d: %q: want names that rise", i, t.Name)
		}
		if err := wiretest.ObjectSchema(t.Schema); err != nil {
			return fmt.Errorf("tool %s: %w", t.Name, err)
		}
	}
	if len(r.Messages) == 0 {
		return errors.New("no messages")
	}
	p := &wiretest.Pairs{}
	for i, m := range r.Messages {
		if err := validMessage(m); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		if i == 0 && m.Role != llm.RoleUser {
			return fmt.Errorf("message 0: role %s: want user", m.Role)
		}
		if err := pair(p, m); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	if len(p.Open) > 0 {
		return fmt.Errorf("calls without result at the end: %s", strings.Join(p.Open, ", "))
	}
	if r.Messages[len(r.Messages)-1].Role == llm.RoleAssistant {
		return errors.New("the last message is the assistant's")
	}
	return nil
}

// validMessage looks at one message alone.
func validMessage(m *llm.Message) error {
	if m == nil || len(m.Parts) == 0 {
		return errors.New("no content")
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		switch {
		case p.Kind == llm.PartText && p.Text == "":
			return errors.New("empty text")
		case p.Kind == llm.PartImage && (p.Size() == 0 || p.MIME == "" || m.Role == llm.RoleAssistant):
			return errors.New("image without data or type, or of the assistant")
		case p.Kind == llm.PartThinking && m.Role != llm.RoleAssistant:
			return fmt.Errorf("thinking of role %s", m.Role)
		case p.Kind == llm.PartCall && (m.Role != llm.RoleAssistant || p.Call == nil):
			return fmt.Errorf("call of role %s", m.Role)
		case p.Kind == llm.PartCall && (p.Call.ID == "" || p.Call.Name == "" || !json.Valid(p.Call.Args)):
			return fmt.Errorf("call %q of %q: want an id, a name and JSON arguments", p.Call.ID, p.Call.Name)
		}
	}
	return nil
}

// pair notes the calls and results of a message.
func pair(p *wiretest.Pairs, m *llm.Message) error {
	switch m.Role {
	case llm.RoleTool:
		return p.Result(m.CallID)
	case llm.RoleUser, llm.RoleAssistant:
		if len(p.Open) > 0 {
			return fmt.Errorf("calls without result: %s", strings.Join(p.Open, ", "))
		}
		for _, c := range m.Calls() {
			if err := p.Call(c.ID); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("role %q", m.Role)
}
