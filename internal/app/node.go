package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/app/statedir"
	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/plugin/tool/exec"
	"github.com/chela-ai/chela/internal/surface/cli"
	"github.com/chela-ai/chela/internal/surface/nodehost"
	"github.com/chela-ai/chela/wire"
)

// nodeOutput is the number of characters of output that a gateway gets of a command.
const nodeOutput = 200_000

// node makes what this machine does as a node. release ends its ownership of the name.
func (b starter) node(ctx context.Context, s cli.Start) (t nodehost.Tools, release func(), err error) {
	tree, err := load(s)
	if err != nil {
		return t, nil, err
	}
	opts, err := settings.Read(tree)
	if err != nil {
		return t, nil, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return t, nil, err
	}
	config, err := exec.ParseConfig(tree.Section("tools.exec"))
	if err != nil {
		return t, nil, err
	}
	env := standard.SandboxEnv{State: s.State, Home: home, Log: s.Log, Getenv: os.Getenv}
	broker, err := b.registry.NewBroker(env, tree.Section)
	if err != nil {
		return t, nil, err
	}
	rules := nodeRules{opts.CommandRules(allowlist.NewFile(filepath.Join(s.State, allowlist.FileName)), home),
		opts.Tools.Exec.IsSet()}
	o := config.Options(exec.Options{
		Broker:      broker,
		Rules:       rules.of,
		Interactive: true,
		Plain:       true,
		Never:       func() []string { return pathpolicy.Trail(s.State) },
		RecordUse: func(uses []allowlist.Use, command string) {
			if err := rules.source.RecordUse(uses, command, time.Now()); err != nil {
				s.Log.Warn("record the use of an allowlist entry", "err", err)
			}
		},
	})
	o.Host, o.Node, o.MaxOutput = "", "", nodeOutput
	t = nodehost.Tools{
		Dir: home, Asks: rules.asks, Policy: rules.words, Look: sandbox.Look(os.Environ()), Notify: notifier(),
		Hint: "On the node, a person can type: chela approvals allowlist add PROGRAM, or chela config set tools.exec.mode ask, so that approvals of the gateway count.",
	}
	if t.Run, err = exec.New(o); err != nil {
		return t, nil, err
	}
	dir := nodeDir(s)
	lock, err := statedir.Own(dir)
	if errors.Is(err, statedir.ErrOwned) {
		return t, nil, chela.Errorf(chela.CodeConflict, "%s is a node with this state directory already", statedir.Owner(dir))
	}
	if err != nil {
		return t, nil, err
	}
	if lock.Killed() {
		if err := b.registry.Sweep(ctx, s.Log, env); err != nil {
			s.Log.Warn("end the commands of a killed process", "err", err)
		}
	}
	return t, func() { _ = lock.Leave() }, nil // the kernel releases it anyway
}

// nodeDir is the folder that the process of the node owns.
func nodeDir(s cli.Start) string { return filepath.Join(s.State, "node") }

// nodeRuns reports whether a process is the node of a state directory.
func nodeRuns(s cli.Start) (bool, error) { return statedir.Owned(nodeDir(s)) }

// nodeRules is the rules of a node about commands. Unless the configuration has some, only
// commands on the allowlist run: the machine has nobody who could be asked.
type nodeRules struct {
	source *allowlist.Source
	set    bool // the configuration has rules
}

func (r nodeRules) of(id chela.AgentID) (*allowlist.Rules, error) {
	rules, err := r.source.Rules(id)
	if err != nil {
		return nil, err
	}
	own := *rules
	own.Policy.Work = false // there is no sandbox
	if !r.set {
		own.Policy = own.Policy.Stricter(allowlist.Policy{Security: allowlist.Listed, Ask: allowlist.Off,
			Fallback: allowlist.Deny})
		own.Policy.Ask, own.Policy.Reads = allowlist.Off, false
	}
	return &own, nil
}

// asks reports whether a person is to be asked.
func (r nodeRules) asks() bool {
	rules, err := r.of(chela.DefaultAgent)
	return err == nil && rules.Policy.Ask != allowlist.Off
}

// words returns the rules as the protocol has them.
func (r nodeRules) words() (wire.NodeExecPolicy, error) {
	rules, err := r.of(chela.DefaultAgent)
	if err != nil {
		return wire.NodeExecPolicy{}, err
	}
	return wire.NodeExecPolicy{Security: string(rules.Policy.Security), Ask: string(rules.Policy.Ask)}, nil
}

// notifier returns what shows notifications on the desktop; nil: there is no desktop, or no
// program for it.
func notifier() func(ctx context.Context, title, body string) error {
	look := sandbox.Look(os.Environ())
	switch {
	case runtime.GOOS == "darwin" && look("osascript") != "":
		const script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
		return func(ctx context.Context, title, body string) error {
			_, err := standard.RunProgram(ctx, "osascript", "-e", script, title, body)
			return err
		}
	case runtime.GOOS == "linux" && look("notify-send") != "" && os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "":
		return func(ctx context.Context, title, body string) error {
			_, err := standard.RunProgram(ctx, "notify-send", "--app-name=Chela", "--", title, body)
			return err
		}
	}
	return nil
}
