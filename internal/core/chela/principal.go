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

// ScopeOwnerTools is a permission of Chela's own: to use the tools that are for the owner
// only. It is not part of the protocol, and no client can ask for it.
const ScopeOwnerTools Scope = "chela.owner-tools"

// wider returns the scopes that include s, except admin, which includes all scopes.
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

// Principal identifies on whose behalf an action is performed, with the credential and
// the scopes. It is passed in the context, and stored in queue items. The zero value has
// no rights.
type Principal struct {
	ID         string  `json:"id"`                   // "owner", or channel:account:sender
	Credential string  `json:"credential,omitempty"` // "process", "socket", "token", "device:<id>", "channel"
	Scopes     []Scope `json:"scopes,omitempty"`
}

// Owner returns the principal of the owner of the process.
func Owner(credential string) Principal {
	return Principal{ID: "owner", Credential: credential, Scopes: []Scope{ScopeAdmin}}
}

// IsOwner reports whether p holds every scope.
func (p Principal) IsOwner() bool { return slices.Contains(p.Scopes, ScopeAdmin) }

// May reports whether p holds s, directly or through a wider scope: admin includes all
// scopes; write includes read, talk and the session scopes.
func (p Principal) May(s Scope) bool {
	if slices.Contains(p.Scopes, s) || p.IsOwner() {
		return true
	}
	return slices.ContainsFunc(s.wider(), func(w Scope) bool { return slices.Contains(p.Scopes, w) })
}

// Covers reports whether p may do all that q may do.
func (p Principal) Covers(q Principal) bool {
	return !slices.ContainsFunc(q.Scopes, func(s Scope) bool { return !p.May(s) })
}

// WebhookCredential is the credential of principals that stand for webhooks: other
// programs.
const WebhookCredential = "webhook"

type principalKey struct{}

// WithPrincipal returns a context with the principal p.
func WithPrincipal(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// PrincipalFrom returns the principal in ctx, or the zero Principal if there is none.
func PrincipalFrom(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal)
	return p
}
