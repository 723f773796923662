package nodes

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/node"
	"github.com/chela-ai/chela/wire"
)

// action is what a call does.
type action struct {
	name    string
	command string // of the node; "": none
	reads   bool   // it may be repeated
	foreign bool   // its answer has texts that others wrote
	media   func(payload json.RawMessage) ([]file, error)
	params  func(args) []any // of the calls of the command
}

// one returns a function for an action with one call.
func one(f func(args) any) func(args) []any { return func(a args) []any { return []any{f(a)} } }

// none is the parameters of a command that has none.
func none(args) []any { return []any{struct{}{}} }

// actions are all actions.
var actions = [...]action{
	{name: "status", reads: true},
	{name: "describe", reads: true},
	{name: "pending", reads: true},
	{name: "approve", reads: true},
	{name: "reject", reads: true},
	{name: "notify", command: wire.NodeNotify, params: one(func(a args) any {
		return fields{
			"title":    strings.TrimSpace(a.Title),
			"body":     strings.TrimSpace(a.Body),
			"sound":    a.Sound,
			"priority": a.Priority,
			"delivery": a.Delivery,
		}.set("title", "body")
	})},
	{name: "camera_list", command: "camera.list", reads: true, params: none},
	{name: "camera_snap", command: "camera.snap", media: single, params: snaps},
	{name: "camera_clip", command: "camera.clip", media: single, params: one(func(a args) any {
		return fields{
			"facing":       cmp.Or(a.Facing, "front"),
			"durationMs":   cmp.Or(a.Duration, node.ClipMS),
			"includeAudio": a.Audio == nil || *a.Audio,
			"format":       "mp4",
			"deviceId":     a.Device,
		}.set("includeAudio")
	})},
	{name: "screen_record", command: "screen.record", media: single, params: one(func(a args) any {
		return fields{
			"durationMs":   cmp.Or(a.Duration, node.ScreenMS),
			"screenIndex":  a.Screen,
			"fps":          cmp.Or(a.FPS, node.ScreenRate),
			"format":       "mp4",
			"includeAudio": a.Audio == nil || *a.Audio,
		}.set("screenIndex", "includeAudio")
	})},
	{name: "screen_snapshot", command: "screen.snapshot", media: single, params: one(func(a args) any {
		return fields{"screenIndex": a.Screen, "maxWidth": a.Width}.set("screenIndex")
	})},
	{name: "photos_latest", command: "photos.latest", media: photos, params: one(func(a args) any {
		return fields{"limit": cmp.Or(a.Limit, 1), "maxWidth": cmp.Or(a.Width, node.PictureWidth),
			"quality": a.quality()}.set()
	})},
	{name: "location_get", command: "location.get", reads: true, params: one(func(a args) any {
		f := fields{"desiredAccuracy": a.Accuracy}
		if a.MaxAge != nil {
			f["maxAgeMs"] = *a.MaxAge
		}
		return f.set("maxAgeMs")
	})},
	{name: "notifications_list", command: "notifications.list", reads: true, foreign: true, params: none},
	{name: "notifications_action", command: "notifications.actions", params: one(func(a args) any {
		return fields{"key": a.Key, "action": a.Do, "replyText": a.Answer}.set("key", "action")
	})},
	{name: "device_status", command: "device.status", reads: true, params: none},
	{name: "device_info", command: "device.info", reads: true, params: none},
	{name: "device_permissions", command: "device.permissions", reads: true, params: none},
	{name: "device_health", command: "device.health", reads: true, params: none},
	{name: "which", command: wire.NodeWhich, reads: true,
		params: one(func(a args) any { return wire.NodeWhichParams{Bins: a.Bins} })},
	{name: "invoke", foreign: true, params: none},
}

// fields are parameters of a command.
type fields map[string]any

// set returns f without empty values, except those of the keys.
func (f fields) set(keys ...string) fields {
	for k, v := range f {
		if (v == "" || v == 0 || v == false || v == 0.0) && !slices.Contains(keys, k) {
			delete(f, k)
		}
	}
	return f
}

func (a args) quality() float64 {
	if a.Quality != nil {
		return *a.Quality
	}
	return node.PictureQuality
}

// snaps returns the parameters of the pictures of a camera: one for each side.
func snaps(a args) []any {
	facing := []string{cmp.Or(a.Facing, "front")}
	if a.Facing == "both" {
		facing = []string{"front", "back"}
	}
	var out []any
	for _, side := range facing {
		out = append(out, fields{
			"facing":   side,
			"maxWidth": cmp.Or(a.Width, node.PictureWidth),
			"quality":  a.quality(),
			"format":   "jpg",
			"delayMs":  a.Delay,
			"deviceId": a.Device,
		}.set())
	}
	return out
}

// recordingTime returns how long a command records, in milliseconds.
func recordingTime(a args, act action) int {
	switch act.name {
	case "camera_clip":
		return cmp.Or(a.Duration, node.ClipMS)
	case "screen_record":
		return cmp.Or(a.Duration, node.ScreenMS)
	case "camera_snap":
		return a.Delay
	}
	return 0
}

// names returns the names of the actions.
func names() []string {
	var out []string
	for _, a := range actions {
		out = append(out, a.name)
	}
	return out
}

// find returns the action of a call, with the command of invoke.
func find(a args) (action, error) {
	i := slices.IndexFunc(actions[:], func(x action) bool { return x.name == a.Action })
	if i < 0 {
		return action{}, fmt.Errorf("there is no action %q; the actions are %s", a.Action, strings.Join(names(), ", "))
	}
	act := actions[i]
	switch a.Action {
	case "notify":
		if strings.TrimSpace(a.Title+a.Body) == "" {
			return act, errors.New("title or body is missing")
		}
	case "camera_clip":
		if a.Facing == "both" {
			return act, errors.New("a clip is of one side: facing is front or back")
		}
	case "which":
		if len(a.Bins) == 0 {
			return act, errors.New("bins is missing: the programs to look for")
		}
	case "notifications_action":
		if a.Key == "" || a.Do == "" || a.Do == "reply" && a.Answer == "" {
			return act, errors.New("notificationKey and notificationAction are needed, and notificationReplyText for reply")
		}
	case "invoke":
		act.command = strings.TrimSpace(a.Command)
		return act, invokable(a)
	}
	return act, nil
}

// invokable returns why a command is not called with invoke.
func invokable(a args) error {
	command := strings.TrimSpace(a.Command)
	switch {
	case command == "":
		return errors.New("invokeCommand is missing")
	case strings.HasPrefix(command, "system.run"):
		return errors.New("shell commands are run with exec and host node, whose rules apply to them")
	case strings.HasPrefix(command, "system.execApprovals."):
		return errors.New("the rules of a node about commands are changed by a person, on the node")
	case a.Params != "" && !json.Valid([]byte(a.Params)):
		return errors.New("invokeParamsJson is not JSON")
	}
	for _, x := range actions {
		if x.command == command && x.media != nil {
			return fmt.Errorf("%s gives a picture or a recording: use the action %s", command, x.name)
		}
	}
	return nil
}
