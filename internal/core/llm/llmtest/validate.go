package llmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/wiretest"
)

// Validate returns why a request is invalid in any dialect: it checks the
// guarantees of session.Compile and the order of the tools. Every provider
// accepts a request that passes.
func Validate(r *llm.Request) error {
	if r.Model == "" {
		return errors.New("no model")
	}
	for i, t := range r.Tools {
		if t.Name == "" || i > 0 && r.Tools[i-1].Name >= t.Name {
			return fmt.Errorf("tool %d: %q: want ascending names", i, t.Name)
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
		return errors.New("the last message has role assistant")
	}
	return nil
}

// validMessage checks a single message.
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
			return errors.New("image without data or type, or in an assistant message")
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

// pair adds the calls and results of a message to p.
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
