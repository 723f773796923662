package wireview

import (
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/wire"
)

// NoSession returns the error for a session that does not exist, with the
// method's own message.
func NoSession(format string, args ...any) error {
	return wire.Errorf(wire.InvalidRequest, format, args...).With(map[string]any{"code": wire.DetailNoSession})
}

// FindSession reads a session. If it does not exist, the error is [NoSession]
// with the message.
func FindSession(r session.Reader, key chela.SessionKey, format string, args ...any) (session.Meta, error) {
	meta, err := session.Lookup(r, key)
	if err == nil && meta.ID == "" {
		err = NoSession(format, args...)
	}
	return meta, err
}
