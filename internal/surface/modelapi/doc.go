// Package modelapi serves the assistant in the forms in which programs talk to models:
//
//	POST /v1/chat/completions   OpenAI's chat completions
//	POST /v1/responses          OpenAI's responses
//	POST /v1/messages           Anthropic's messages
//	GET  /v1/models             the names that the assistant has there
//
// A request is a message like any other: it passes the gate, waits in the queue of its
// session, and starts a run with the tools, rules and budgets of its agent. The answer is
// made of the events of that run. A client that goes away stops nothing: the run continues,
// and a request with the same Idempotency-Key gets its answer.
//
// A form ([chat], [responses], [messages]) parses requests and writes answers; everything
// else is common to all. Each form is off unless the configuration switches it on.
package modelapi
