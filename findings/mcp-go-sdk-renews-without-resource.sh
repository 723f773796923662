#!/bin/sh
# github.com/modelcontextprotocol/go-sdk v1.8.0 (needs Go): auth.AuthorizationCodeHandler
# names the MCP server (the parameter resource of RFC 8707) at the authorization endpoint and
# when it exchanges the code, but not when it renews the token, although the authorization of
# MCP wants it in all requests for tokens. An authorization server that issues tokens for what
# a request names gives a token for something else, or refuses, at the first renewal.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='authorize: resource yes
authorization_code: resource yes
refresh_token: resource no'
cat >main.go <<'GO'
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

func main() {
	var base string
	say := func(what string, has bool) {
		fmt.Printf("%s: resource %s\n", what, map[bool]string{true: "yes", false: "no"}[has])
	}
	write := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(v)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/oauth-protected-resource/mcp":
			write(w, map[string]any{"resource": base + "/mcp", "authorization_servers": []string{base}})
		case "/.well-known/oauth-authorization-server":
			write(w, map[string]any{"issuer": base, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token",
				"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}})
		case "/token":
			r.ParseForm()
			say(r.PostForm.Get("grant_type"), r.PostForm.Get("resource") == base+"/mcp")
			life := 1 // shorter than the reserve of the library: it is renewed at once
			if r.PostForm.Get("grant_type") == "refresh_token" {
				life = 3600
			}
			write(w, map[string]any{"access_token": "a", "refresh_token": "r", "token_type": "Bearer", "expires_in": life})
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer srv.Close()
	base = srv.URL
	h, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		PreregisteredClient: &oauthex.ClientCredentials{ClientID: "c"},
		RedirectURL:         "http://127.0.0.1:1/callback",
		Client:              srv.Client(),
		AuthorizationCodeFetcher: func(_ context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			r, _ := http.NewRequest("GET", a.URL, nil)
			say("authorize", r.URL.Query().Get("resource") == base+"/mcp")
			return &auth.AuthorizationResult{Code: "x", State: r.URL.Query().Get("state")}, nil
		},
	})
	if err != nil {
		panic(err)
	}
	res, err := http.Get(base + "/mcp")
	if err != nil {
		panic(err)
	}
	if err := h.Authorize(context.Background(), res.Request, res); err != nil {
		panic(err)
	}
	ts, err := h.TokenSource(context.Background())
	if err != nil {
		panic(err)
	}
	if _, err := ts.Token(); err != nil {
		panic(err)
	}
}
GO
{
	go mod init finding
	go get github.com/modelcontextprotocol/go-sdk@v1.8.0
	go mod tidy
} >log 2>&1 || { cat log; exit 1; }
got=$(go run .)
printf '%s\n' "$got"
[ "$got" = "$want" ]
