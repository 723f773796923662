package inbound

import (
	"context"
	"strings"
	"unicode"

	"github.com/chela-ai/chela/internal/chunk"
)

// Configuration is what /config shows and changes. What could be a secret is
// neither shown nor taken.
type Configuration interface {
	// Get returns what is in force at a path, as JSON; for the empty path, all
	// that is set.
	Get(path string) (string, error)
	// Set sets a value, Unset takes it away. They report whether that is in
	// force, or will be with the next start.
	Set(ctx context.Context, path, value string) (bool, error)
	Unset(ctx context.Context, path string) (bool, error)
}

// configure is /config. A change is no part of the commit that takes the
// command: it is one of the configuration's files.
func configure(ctx context.Context, k *call) (string, error) {
	c := k.g.o.Configuration()
	if c == nil {
		return "/config is off. `chela config set commands.config true` turns it on.", nil
	}
	verb, rest := cut(k.args)
	path, value := rest, ""
	if i := strings.IndexFunc(rest, func(r rune) bool { return r == '=' || unicode.IsSpace(r) }); i >= 0 {
		path, value = rest[:i], strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest[i:]), "="))
	}
	var now bool
	var err error
	switch verb = strings.ToLower(verb); {
	case value == "" && (verb == "" || verb == "show" || verb == "get" && path != ""):
		text, err := c.Get(path)
		return chunk.Fenced(text), err
	case verb == "set" && path != "" && value != "":
		now, err = c.Set(ctx, path, value)
	case verb == "unset" && path != "" && value == "":
		now, err = c.Unset(ctx, path)
	default:
		return "/config show [path], get <path>, set <path> <value> or unset <path>", nil
	}
	if err != nil {
		return "", err
	}
	done := path + " is set"
	if verb == "unset" {
		done = path + " is unset"
	}
	if !now {
		return done + "; it counts with the next start.", nil
	}
	return done + "; it counts from now on.", nil
}
