package inbound

import (
	"context"
	"strings"
	"unicode"

	"github.com/chela-ai/chela/internal/kit/chunk"
)

// Configuration is the target of /config. It neither returns nor accepts values
// that may be secrets.
type Configuration interface {
	// Get returns the effective value at a path as JSON; for the empty path, all
	// configured values.
	Get(path string) (string, error)
	// Set sets a value and Unset removes it. They report whether the change took
	// effect immediately; otherwise it takes effect after a restart.
	Set(ctx context.Context, path, value string) (bool, error)
	Unset(ctx context.Context, path string) (bool, error)
}

// Overrides is the target of /debug: values that are in force instead of those of the
// files, until the gateway stops. It neither returns nor accepts values that may be
// secrets.
type Overrides interface {
	// Show returns a line for each override.
	Show() string
	Set(ctx context.Context, path, value string) error
	// Unset ends an override; "": all of them.
	Unset(ctx context.Context, path string) error
}

// debug is /debug.
func debug(ctx context.Context, k *call) (string, error) {
	o := k.g.o.Debug()
	if o == nil {
		return "", refuse{"/debug is disabled. To enable it, run `chela config set commands.debug true`."}
	}
	switch verb, path, value := change(k.args); {
	case path == "" && (verb == "" || verb == "show"):
		if text := o.Show(); text != "" {
			return chunk.Fenced(strings.TrimSpace(text)), nil
		}
		return "Nothing of the configuration is overridden.", nil
	case verb == "set" && path != "" && value != "":
		return path + " is overridden until the gateway stops.", o.Set(ctx, path, value)
	case verb == "unset" && path != "" && value == "":
		return path + " is not overridden any more.", o.Unset(ctx, path)
	case verb == "reset" && path == "":
		return "Nothing of the configuration is overridden any more.", o.Unset(ctx, "")
	}
	return "", refuse{"Usage: /debug show, set <path> <value>, unset <path> or reset"}
}

// change parses the arguments of /config and /debug: a verb, a path and a value.
func change(args string) (verb, path, value string) {
	verb, path = cut(args)
	if i := strings.IndexFunc(path, func(r rune) bool { return r == '=' || unicode.IsSpace(r) }); i >= 0 {
		path, value = path[:i], strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(path[i:]), "="))
	}
	return strings.ToLower(verb), path, value
}

// configure is /config. A change is not part of the command's commit, because it
// is written to the configuration file.
func configure(ctx context.Context, k *call) (string, error) {
	c := k.g.o.Configuration()
	if c == nil {
		return "", refuse{"/config is disabled. To enable it, run `chela config set commands.config true`."}
	}
	verb, path, value := change(k.args)
	if key := k.g.o.FixedConfig(k.in.Address); key != "" && (verb == "set" || verb == "unset") {
		return "", refuse{"/config " + verb + " is disabled in this chat. To enable it, run `chela config unset " + key +
			"`."}
	}
	var immediate bool
	var err error
	switch {
	case value == "" && (verb == "" || verb == "show" || verb == "get" && path != ""):
		text, err := c.Get(path)
		return chunk.Fenced(text), err
	case verb == "set" && path != "" && value != "":
		immediate, err = c.Set(ctx, path, value)
	case verb == "unset" && path != "" && value == "":
		immediate, err = c.Unset(ctx, path)
	default:
		return "", refuse{"Usage: /config show [path], get <path>, set <path> <value> or unset <path>"}
	}
	if err != nil {
		return "", err
	}
	done := path + " is set"
	if verb == "unset" {
		done = path + " is unset"
	}
	if !immediate {
		return done + "; this takes effect after a restart.", nil
	}
	return done + "; this takes effect immediately.", nil
}
