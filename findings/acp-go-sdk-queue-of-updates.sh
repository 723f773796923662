#!/bin/sh
# github.com/coder/acp-go-sdk v0.13.0 (needs Go): an agent that sends updates faster than the
# client handles them is not slowed down; as soon as 1025 wait, the client closes the
# connection. The call of Prompt, which would have ended well, returns "peer disconnected
# before response", as if the agent had gone. A client that stops for a moment, to ask or to
# draw, while a model writes its answer in small pieces loses the session.
# Seen: see want below: how many updates were sent, and how Prompt ended.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='1000 updates: end_turn, <nil>
1100 updates: peer disconnected before response'
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"
)

// agent answers each prompt with many small updates.
type agent struct {
	acp.Agent
	conn    *acp.AgentSideConnection
	updates int
}

func (agent) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{ProtocolVersion: acp.ProtocolVersionNumber}, nil
}

func (agent) NewSession(context.Context, acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	return acp.NewSessionResponse{SessionId: "1"}, nil
}

func (a *agent) Prompt(ctx context.Context, r acp.PromptRequest) (acp.PromptResponse, error) {
	for range a.updates {
		if err := a.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: r.SessionId, Update: acp.UpdateAgentMessageText("x")}); err != nil {
			return acp.PromptResponse{}, err
		}
	}
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}

// client stops for a second at the first update.
type client struct {
	acp.Client
	stopped bool
}

func (c *client) SessionUpdate(context.Context, acp.SessionNotification) error {
	if !c.stopped {
		c.stopped = true
		time.Sleep(time.Second)
	}
	return nil
}

func main() {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	ctx := context.Background()
	for _, n := range []int{1000, 1100} {
		fromClient, toAgent := io.Pipe()
		fromAgent, toClient := io.Pipe()
		a := &agent{updates: n}
		a.conn = acp.NewAgentSideConnection(a, toClient, fromClient)
		conn := acp.NewClientSideConnection(&client{}, toAgent, fromAgent)
		if _, err := conn.Initialize(ctx, acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber}); err != nil {
			panic(err)
		}
		s, err := conn.NewSession(ctx, acp.NewSessionRequest{Cwd: "/", McpServers: []acp.McpServer{}})
		if err != nil {
			panic(err)
		}
		r, err := conn.Prompt(ctx, acp.PromptRequest{SessionId: s.SessionId, Prompt: []acp.ContentBlock{acp.TextBlock("x")}})
		if err != nil && strings.Contains(err.Error(), "peer disconnected before response") {
			fmt.Printf("%d updates: peer disconnected before response\n", n)
			continue
		}
		fmt.Printf("%d updates: %s, %v\n", n, r.StopReason, err)
	}
}
GO
go mod init example.com/updates >/dev/null 2>&1
go get github.com/coder/acp-go-sdk@v0.13.0 >/dev/null 2>&1
got=$(go run . 2>/dev/null)
echo "$got"
[ "$got" = "$want" ]
