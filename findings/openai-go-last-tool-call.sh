#!/bin/sh
# github.com/openai/openai-go/v3 v3.100.0 (needs Go): its accumulator adds up a stream of chat
# completions and tells when a tool call is complete (JustFinishedToolCall; the documentation
# says not to rely on it with parallel calls). It does so by what comes after a call, so a
# single call whose last piece has the finish_reason in it, as servers send that are compatible
# with OpenAI, is never told, and the tool is not run; the message at the end has it. And the
# usage is summed over the pieces: a server that sends the counts so far with each of them
# (vLLM can) has its prompt counted once a piece, so that a bill or a limit is many times too
# high.
# Seen: see want below: the call that was told, that in the message, and tokens of the prompt.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='call, finish_reason, usage: told f, in the message f, prompt 10
call with finish_reason, usage: told -, in the message f, prompt 10
call with finish_reason and usage: told -, in the message f, prompt 10
counts in each of three pieces: told -, in the message -, prompt 30'
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const usage = `"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}`

func piece(delta, finish, rest string) string {
	return `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]` + rest + `}`
}

const call = `{"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`

func or(names []string) string {
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, " ")
}

func main() {
	last := `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],` + usage + `}`
	for _, t := range []struct {
		name   string
		pieces []string
	}{
		{"call, finish_reason, usage", []string{piece(call, "null", ""), piece(`{}`, `"tool_calls"`, ""), last}},
		{"call with finish_reason, usage", []string{piece(call, `"tool_calls"`, ""), last}},
		{"call with finish_reason and usage", []string{piece(call, `"tool_calls"`, ","+usage)}},
		{"counts in each of three pieces", []string{piece(`{"content":"a"}`, "null", ","+usage), piece(`{"content":"b"}`, "null", ","+usage), piece(`{}`, `"stop"`, ","+usage)}},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, p := range append(t.pieces, "[DONE]") {
				fmt.Fprintf(w, "data: %s\n\n", p)
			}
		}))
		client := openai.NewClient(option.WithAPIKey("x"), option.WithBaseURL(server.URL))
		stream := client.Chat.Completions.NewStreaming(context.Background(), openai.ChatCompletionNewParams{Model: "m"})
		var acc openai.ChatCompletionAccumulator
		var told, held []string
		for stream.Next() {
			acc.AddChunk(stream.Current())
			if c, ok := acc.JustFinishedToolCall(); ok {
				told = append(told, c.Name)
			}
		}
		if err := stream.Err(); err != nil {
			panic(err)
		}
		for _, c := range acc.Choices[0].Message.ToolCalls {
			held = append(held, c.Function.Name)
		}
		fmt.Printf("%s: told %s, in the message %s, prompt %d\n", t.name, or(told), or(held), acc.Usage.PromptTokens)
		server.Close()
	}
}
GO
go mod init example.com/pieces >/dev/null 2>&1
go get github.com/openai/openai-go/v3@v3.100.0 >/dev/null 2>&1
got=$(go run .)
echo "$got"
[ "$got" = "$want" ]
