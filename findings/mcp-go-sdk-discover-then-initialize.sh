#!/bin/sh
# github.com/modelcontextprotocol/go-sdk v1.8.0 (needs Go): a server that was asked
# server/discover takes it for the beginning of the session. If the client then goes on as a
# client of older protocols does, with initialize, it is refused as a duplicate, even if the
# client never saw the answer. So a client that gives up waiting for server/discover, while a
# server is still starting, and falls back to initialize cannot use that process at all.
# A second server/discover is answered, and so is initialize without one before.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='initialize: ok
discover, discover: ok, ok
discover, initialize: ok, duplicate "initialize" received'
cat >main.go <<'GO'
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

var requests = map[string]string{
	"discover":   `"method":"server/discover","params":{` + meta + `}`,
	"initialize": `"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`,
}

func main() {
	for _, list := range []string{"initialize", "discover, discover", "discover, initialize"} {
		fromClient, toServer := io.Pipe()
		fromServer, toClient := io.Pipe()
		s := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
		go s.Run(context.Background(), &mcp.IOTransport{Reader: fromClient, Writer: toClient})
		lines := bufio.NewScanner(fromServer)
		var out []string
		for i, name := range strings.Split(list, ", ") {
			fmt.Fprintf(toServer, "{\"jsonrpc\":\"2.0\",\"id\":%d,%s}\n", i+1, requests[name])
			lines.Scan()
			var answer struct{ Error *struct{ Message string } }
			if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
				panic(err)
			}
			said := "ok"
			if answer.Error != nil {
				said = answer.Error.Message
			}
			out = append(out, said)
		}
		fmt.Printf("%s: %s\n", list, strings.Join(out, ", "))
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
