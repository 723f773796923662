package native

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native/launch"
)

// tryOut runs the probe.
func (b *Broker) tryOut(ctx context.Context) (sandbox.Level, []sandbox.Effect) {
	none := sandbox.Level{Name: "none"}
	if err := launch.Supported(); err != nil { // the processor has none
		none.Reason = err.Error()
		return none, nil
	}
	err := os.MkdirAll(b.o.Layers, 0o700)
	var dir string
	if err == nil {
		dir, err = os.MkdirTemp(b.o.Layers, "probe-")
	}
	if err != nil {
		none.Reason = err.Error()
		return none, nil
	}
	defer os.RemoveAll(dir)
	defer func() { _ = removeLayers(b.layersFolder(dir)) }() // nobody uses them again
	ctx, cancel := context.WithTimeout(ctx, buildTime)
	defer cancel()
	outside := dir + "-outside"
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		none.Reason = err.Error()
		return none, nil
	}
	defer os.Remove(outside)
	r := sandbox.Rights{Workspace: dir}
	c, err := b.build(ctx, b.wants(r, nil, dir))
	if err != nil {
		none.Reason, none.Hint = err.Error(), hint(err)
		return none, nil
	}
	var out bytes.Buffer
	p, err := b.run(ctx, c, sandbox.Plan{
		Path:   "/bin/sh",
		Argv:   []string{"sh", "-c", sandbox.Probe, "sh", outside, "ro"},
		Dir:    dir,
		Env:    []string{"PATH=/usr/bin:/bin"},
		Rights: &r,
	}, nil, &out)
	if err != nil {
		c.end()
		none.Reason, none.Hint = err.Error(), hint(err)
		return none, nil
	}
	if exit, err := p.Wait(); err != nil || exit.Code != 0 {
		none.Reason = fmt.Sprintf("the trial ended with %d %s: %v", exit.Code, exit.Signal, err)
		return none, nil
	}
	effects := sandbox.Effects(out.String())
	if none.Reason = sandbox.Open(effects); none.Reason != "" {
		return none, effects
	}
	if files, _ := launch.LandlockRights(); files == 0 {
		return sandbox.Level{
			Name: "namespaces", Reason: "the kernel has no Landlock, so a command could write to named pipes of other programs in folders that it can read",
			Hint: "add landlock to the list lsm= on the command line of the kernel",
		}, effects
	}
	return sandbox.Level{Name: "full", Complete: true}, effects
}

// hint says what a person can do when namespaces are refused.
func hint(err error) string {
	for _, setting := range [...]struct{ file, bad, hint string }{
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
			"sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
		{"/proc/sys/user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=10000"},
	} {
		if b, err := os.ReadFile(setting.file); err == nil && strings.TrimSpace(string(b)) == setting.bad {
			return setting.hint
		}
	}
	l, ok := errors.AsType[*launchError](err)
	hidden := ok && l.errno == unix.EPERM && strings.HasPrefix(l.text, string(procfs)) // a container hides parts of /proc
	if hidden || exists("/.dockerenv") || exists("/run/.containerenv") {
		return "run the container with --security-opt seccomp=unconfined --security-opt systempaths=unconfined, or on the host"
	}
	return ""
}
