package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/chela-ai/chela/internal/core/chela"
)

// stateOf returns the SQLSTATE of an error; "": it is not one of the server.
func stateOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// passing reports whether the same may succeed later: the server restarts, is not reachable
// or has too many connections.
func passing(err error) bool {
	if errors.As(err, new(*pgconn.ParseConfigError)) {
		return false
	}
	switch code := stateOf(err); {
	case code == "":
		return true // the network, or a deadline
	case strings.HasPrefix(code, "08"), code == "57P01", code == "57P02", code == "57P03", code == "53300",
		code == "25P03", code == "57P05":
		return true
	}
	return false
}

// conflicting reports whether a transaction has to be repeated because of others: a failed
// serialization, a deadlock, or a table that was changed after a statement was prepared.
func conflicting(err error) bool {
	switch stateOf(err) {
	case "40001", "40P01", "0A000":
		return true
	}
	return false
}

// explain converts an error of the server to an error for callers.
func explain(err error) error {
	switch code := stateOf(err); {
	case err == nil, errors.As(err, new(*chela.Error)), errors.Is(err, context.Canceled):
		return err
	case code == "53100":
		return &chela.Error{
			Code: chela.CodeFull, Hint: "free some room on the disk of the PostgreSQL server",
			Err: fmt.Errorf("%w: %w", chela.ErrFull, err),
		}
	case code == "" && !isConnection(err):
		return err // of the function of the caller
	case code == "" || passing(err):
		return &chela.Error{Code: chela.CodeUnavailable, Err: fmt.Errorf("%w: %w", chela.ErrStorage, err)}
	}
	return fmt.Errorf("storage: %w", err)
}

// isConnection reports whether an error is one of the connection to the server.
func isConnection(err error) bool {
	return errors.As(err, new(*brokenError))
}

// brokenError says that a connection to the server broke, or could not be made.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return "connection to PostgreSQL: " + e.err.Error() }
func (e *brokenError) Unwrap() error { return e.err }

// brief returns the error of the network in an error of a connection, which lists each way
// that was tried, with and without TLS.
func brief(err error) error {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e
	}
	return err
}

// connecting returns the error about a server that cannot be used, for people. pgconn's
// errors contain the host, the user and the database, and never the password.
func connecting(err error) error {
	e := &chela.Error{Code: chela.CodeUnavailable, Message: "connect to the database of storage.postgres", Err: brief(err)}
	switch stateOf(err) {
	case "28P01", "28000":
		e.Hint = "correct the user and the password in storage.postgres"
	case "3D000":
		e.Hint = "create the database: createdb chela"
	case "42501":
		e.Hint = "let the user create a schema: GRANT CREATE ON DATABASE … TO …"
	default:
		if passing(err) {
			e.Hint = "start PostgreSQL, or correct storage.postgres"
		}
	}
	return e
}
