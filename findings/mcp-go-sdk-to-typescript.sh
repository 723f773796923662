#!/bin/sh
# github.com/modelcontextprotocol/go-sdk v1.8.0 as the server and npm
# @modelcontextprotocol/sdk 1.32.2 as the client (needs Go and Node): things that the one
# official library sends without an error, the other one refuses. An empty text resource
# comes without its text, so an empty file cannot be read, although an empty binary one can.
# A tool that returns a list or a text, not an object, sends it as structuredContent, and
# the client throws away the whole result, with the text in it. Missing arguments of a
# prompt, even if declared as required, are not noticed by either.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='text "a": read
text "": Invalid input: expected string, received undefined
blob "": read
tool object: {"n":1}
tool list: Invalid input: expected record, received array
prompt without its argument: "Hello "'
cat >main.go <<'GO'
package main

import (
	"context"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
	for uri, contents := range map[string]mcp.ResourceContents{"x://full": {Text: "a"}, "x://empty": {Text: ""}, "x://blob": {Blob: []byte{}}} {
		contents.URI = uri
		server.AddResource(&mcp.Resource{URI: uri, Name: uri}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&contents}}, nil
		})
	}
	for name, out := range map[string]any{"object": map[string]int{"n": 1}, "list": []int{1, 2}} {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, out, nil
		})
	}
	prompt := &mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}}}
	server.AddPrompt(prompt, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Hello " + r.Params.Arguments["name"]}}}}, nil
	})
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
GO
cat >main.mjs <<'JS'
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const client = new Client({ name: "client", version: "1" });
await client.connect(new StdioClientTransport({ command: "./server", stderr: "ignore" }));
const reason = (e) => e.message.match(/Invalid input: expected (string|record), [^"]*/)[0];
const read = (name, uri) => client.readResource({ uri }).then(() => console.log(name + ": read"), (e) => console.log(name + ": " + reason(e)));
await read('text "a"', "x://full");
await read('text ""', "x://empty");
await read('blob ""', "x://blob");
for (const name of ["object", "list"]) {
  const told = await client.callTool({ name, arguments: {} }).then((r) => JSON.stringify(r.structuredContent), reason);
  console.log(`tool ${name}: ${told}`);
}
console.log("prompt without its argument: " + JSON.stringify((await client.getPrompt({ name: "greet" })).messages[0].content.text));
await client.close();
JS
npm install --silent --no-audit --no-fund --ignore-scripts @modelcontextprotocol/sdk@1.32.2 >/dev/null 2>&1
go mod init example.com/server >/dev/null 2>&1
go get github.com/modelcontextprotocol/go-sdk/mcp@v1.8.0 >/dev/null 2>&1
go build -o server main.go
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
