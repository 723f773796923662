package settings

import (
	"errors"
	"fmt"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
)

// Check returns the errors in the rules about tools and agents.
func (o *Settings) Check() error {
	if err := o.Tools.Loop.Validate(); err != nil {
		return fmt.Errorf("tools.loopDetection: %w", err)
	}
	errs := []error{
		o.Tools.Config.Check("tools"), commandsAt("tools.exec", o.Tools.Exec.Config),
		o.Agent.Sandbox.Check("agents.defaults.sandbox"), o.checkElevated(),
		o.Agent.Subagents.Check("agents.defaults.subagents"), o.Session.AgentToAgent.Check("session.agentToAgent"),
		o.checkBindings(),
	}
	errs = append(errs, o.checkContexts()...)
	errs = append(errs, o.checkHeartbeats()...)
	for id, a := range o.Agents.Entries {
		at := "agents.entries." + id + ".tools"
		errs = append(errs, a.Tools.Config.Check(at), commandsAt(at+".exec", a.Tools.Exec),
			a.Sandbox.Check("agents.entries."+id+".sandbox"), a.Subagents.Check("agents.entries."+id+".subagents"))
	}
	for i, a := range o.Agents.List {
		at := fmt.Sprintf("agents.list[%d].tools", i)
		errs = append(errs, a.Tools.Config.Check(at), commandsAt(at+".exec", a.Tools.Exec),
			a.Sandbox.Check(fmt.Sprintf("agents.list[%d].sandbox", i)),
			a.Subagents.Check(fmt.Sprintf("agents.list[%d].subagents", i)))
	}
	return errors.Join(errs...)
}

// commandsAt returns the error in the rules about commands at a path.
func commandsAt(path string, c allowlist.Config) error {
	if err := c.Check(); err != nil {
		return fmt.Errorf("%s.%w", path, err)
	}
	return nil
}

// CommandRules returns the source of the rules about commands: the configuration
// and the file of approvals.
func (o *Settings) CommandRules(file *allowlist.File, home string) *allowlist.Source {
	s := &allowlist.Source{
		File: file, Base: allowlist.Default(), All: o.Tools.Exec.Config, Home: home,
		Agent: func(id chela.AgentID) allowlist.Config { a, _ := o.Agents.find(id); return a.Tools.Exec },
	}
	if o.Compat == "openclaw" {
		s.Base = allowlist.Permissive()
	}
	return s
}
