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

// configure is /config. A change is not part of the command's commit, because it
// is written to the configuration file.
func configure(ctx context.Context, k *call) (string, error) {
	c := k.g.o.Configuration()
	if c == nil {
		return "/config is disabled. To enable it, run `chela config set commands.config true`.", nil
	}
	verb, rest := cut(k.args)
	path, value := rest, ""
	if i := strings.IndexFunc(rest, func(r rune) bool { return r == '=' || unicode.IsSpace(r) }); i >= 0 {
		path, value = rest[:i], strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest[i:]), "="))
	}
	var immediate bool
	var err error
	switch verb = strings.ToLower(verb); {
	case value == "" && (verb == "" || verb == "show" || verb == "get" && path != ""):
		text, err := c.Get(path)
		return chunk.Fenced(text), err
	case verb == "set" && path != "" && value != "":
		immediate, err = c.Set(ctx, path, value)
	case verb == "unset" && path != "" && value == "":
		immediate, err = c.Unset(ctx, path)
	default:
		return "Usage: /config show [path], get <path>, set <path> <value> or unset <path>", nil
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
