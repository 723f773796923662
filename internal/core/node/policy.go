package node

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Policy is the section gateway.nodes.commands: which commands of nodes may be called, in
// addition to and instead of those that the platform of a node has by default.
type Policy struct {
	Allow []string `json:"allow"` // exact names
	Deny  []string `json:"deny"`  // exact names; they win
}

// dangerous are the commands that are off until Allow names them: they watch, or speak to
// others in the person's name.
var dangerous = [...]string{
	"camera.snap", "camera.clip", "camera.ptz.control", "screen.record", "contacts.add", "calendar.add", "reminders.add",
	"sms.send", "sms.search", "health.summary", "desktop.stream",
}

// Canvas is how the commands that show the assistant's own pages begin.
const Canvas = "canvas."

// private are commands of OpenClaw's own workers, which nobody calls.
const private = "worker."

// Platforms, as the policy tells them apart.
const (
	iOS     = "ios"
	watchOS = "watchos"
	android = "android"
	macOS   = "macos"
	linux   = "linux"
	windows = "windows"
	other   = ""
)

// Commands by what they are for.
const (
	phone   = "camera.list location.get system.notify"
	device  = "device.info device.status"
	people  = "contacts.search calendar.events reminders.list photos.latest motion.activity motion.pedometer"
	desktop = "system.run system.run.prepare system.which system.execApprovals.get system.execApprovals.set fs.listDir terminal.upload " +
		"system.notify browser.proxy browser.proxy.upload.v1 mcp.tools.call.v1 agent.cli.claude.run.v1 screen.snapshot computer.act"
	talk = "talk.ptt.start talk.ptt.stop talk.ptt.cancel talk.ptt.once"
)

// defaults are the commands that a platform has by default.
var defaults = map[string]string{
	iOS:     phone + " " + device + " " + people + " watch.status watch.notify " + talk,
	watchOS: device + " system.notify",
	android: phone + " " + device + " " + people +
		" notifications.list notifications.actions device.permissions device.health device.apps callLog.search " +
		"mobile.ui.observe mobile.ui.act " + talk,
	macOS:   phone + " " + device + " " + people + " device.apps camera.ptz.status " + desktop + " " + talk,
	linux:   desktop,
	windows: phone + " " + device + " " + desktop,
	other:   phone,
}

// Permits returns why a command of a node must not be called: the node does not have it, no
// person approved it, or the policy forbids it; nil: it may be called.
func (p Policy) Permits(n *Node, command string) error {
	switch {
	case !slices.Contains(n.Declared, command):
		return chela.Errorf(chela.CodeInvalid, "node command not allowed: %s does not have the command %q",
			n.Title(), command)
	case !slices.Contains(n.Approved, command) && n.Request != "":
		return &chela.Error{
			Code: chela.CodeForbidden, Message: fmt.Sprintf("node command not allowed: nobody approved %q for %s yet",
				command, n.Title()),
			Hint: "chela nodes approve " + n.Request,
		}
	case !slices.Contains(n.Approved, command):
		return &chela.Error{
			Code: chela.CodeForbidden,
			Message: fmt.Sprintf(
				"node command not allowed: nobody approved %q for %s, and its request has expired: it asks again when it connects",
				command, n.Title()),
			Hint: "chela nodes list",
		}
	}
	if err := p.check(n, command); err != nil {
		err.Message = "node command not allowed: " + err.Message
		return err
	}
	return nil
}

// check returns why the policy keeps a command of a node from being called; nil: it does
// not. Canvas commands show the assistant's own pages and are allowed everywhere.
func (p Policy) check(n *Node, command string) *chela.Error {
	set := "chela config set gateway.nodes.commands.allow '[\"" + command + "\"]'"
	switch {
	case strings.HasPrefix(command, private):
		return chela.Errorf(chela.CodeForbidden, "%s is an internal command of nodes", command)
	case slices.Contains(p.Deny, command):
		return &chela.Error{Code: chela.CodeForbidden, Message: command + " is denied by gateway.nodes.commands.deny",
			Hint: "chela config get gateway.nodes.commands"}
	case slices.Contains(p.Allow, command):
		return nil
	case slices.Contains(dangerous[:], command):
		return &chela.Error{Code: chela.CodeForbidden, Message: command +
			" is off until gateway.nodes.commands.allow names it", Hint: set}
	case strings.HasPrefix(command, Canvas),
		slices.Contains(strings.Fields(defaults[platform(n.Platform, n.Family)]), command):
		return nil
	}
	return &chela.Error{Code: chela.CodeForbidden, Message: command +
		" is not among the usual commands of this kind of node", Hint: set}
}

// nativeLabel matches the platforms of OpenClaw's apps, such as "iOS 26.1".
var nativeLabel = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(ios|ipados|watchos|macos|android) \d+(?:\.\d+){0,2}(?: \(sdk \d+\))?$`)
})

// platform returns the platform of a node. One whose claims do not agree has few commands.
func platform(name, family string) string {
	name, family = strings.ToLower(strings.TrimSpace(name)), strings.ToLower(strings.TrimSpace(family))
	if m := nativeLabel().FindStringSubmatch(name); m != nil {
		name = m[1]
	}
	var families []string
	switch name {
	case "ios", "ipados":
		name, families = iOS, []string{"", "iphone", "ipad", "ios"}
	case watchOS:
		families = []string{"apple watch", "watchos"}
	case android:
		families = []string{"", "android"}
	case macOS, "darwin":
		name, families = macOS, []string{"", "mac"}
	case linux:
		families = []string{"", "linux"}
	case windows, "win32":
		name, families = windows, []string{"", "windows"}
	default:
		return other
	}
	if !slices.Contains(families, family) {
		return other
	}
	return name
}
