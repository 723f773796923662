package chela

import (
	"context"
	"slices"
)

// Scope is a permission of an operator connection.
type Scope string

// The scopes of the gateway protocol.
const (
	ScopeRead          Scope = "operator.read"
	ScopeWrite         Scope = "operator.write"
	ScopeAdmin         Scope = "operator.admin"
	ScopeApprovals     Scope = "operator.approvals"
	ScopeQuestions     Scope = "operator.questions"
	ScopePairing       Scope = "operator.pairing"
	ScopeTalk          Scope = "operator.talk"
	ScopeTalkSecrets   Scope = "operator.talk.secrets"
	ScopeSessionsRead  Scope = "operator.sessions.read"
	ScopeSessionsWrite Scope = "operator.sessions.write"
)

// wider returns the scopes that hold s too, beside admin, which holds all.
func (s Scope) wider() []Scope {
	switch s {
	case ScopeRead, ScopeTalk, ScopeSessionsWrite:
		return []Scope{ScopeWrite}
	case ScopeSessionsRead:
		return []Scope{ScopeRead, ScopeWrite, ScopeSessionsWrite}
	}
	return nil
}

// Known reports whether s is a scope of the protocol.
func (s Scope) Known() bool {
	switch s {
	case ScopeRead, ScopeWrite, ScopeAdmin, ScopeApprovals, ScopeQuestions, ScopePairing,
		ScopeTalk, ScopeTalkSecrets, ScopeSessionsRead, ScopeSessionsWrite:
		return true
	}
	return false
}

// Principal says who acts, by which credential, with which scopes. It travels
// in the context, and in the queue item where the context ends. The zero value
// may do nothing.
type Principal struct {
	ID         string  `json:"id"`                   // "owner", or channel:account:sender
	Credential string  `json:"credential,omitempty"` // "process", "socket", "token", "device:<id>", "channel"
	Scopes     []Scope `json:"scopes,omitempty"`
}

// Owner returns the principal of the person whose process this is.
func Owner(credential string) Principal {
	return Principal{ID: "owner", Credential: credential, Scopes: []Scope{ScopeAdmin}}
}

// IsOwner reports whether p holds every scope.
func (p Principal) IsOwner() bool { return slices.Contains(p.Scopes, ScopeAdmin) }

// May reports whether p holds s, directly or through a wider scope: admin
// holds all, write holds read, talk and the scopes of sessions.
func (p Principal) May(s Scope) bool {
	if slices.Contains(p.Scopes, s) || p.IsOwner() {
		return true
	}
	return slices.ContainsFunc(s.wider(), func(w Scope) bool { return slices.Contains(p.Scopes, w) })
}

type principalKey struct{}

// WithPrincipal returns a context in which p acts.
func WithPrincipal(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// PrincipalFrom returns who acts in ctx: the zero Principal when nobody was
// set, which may do nothing.
func PrincipalFrom(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal)
	return p
}
