package chela

import (
	"context"
	"slices"
)

// Scope is a permission of an operator connection.
type Scope string

// The scopes of the gateway protocol.
const (
	ScopeRead      Scope = "operator.read"
	ScopeWrite     Scope = "operator.write"
	ScopeAdmin     Scope = "operator.admin"
	ScopeApprovals Scope = "operator.approvals"
	ScopePairing   Scope = "operator.pairing"
)

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
// holds all, write holds read.
func (p Principal) May(s Scope) bool {
	if slices.Contains(p.Scopes, s) || p.IsOwner() {
		return true
	}
	return s == ScopeRead && slices.Contains(p.Scopes, ScopeWrite)
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
