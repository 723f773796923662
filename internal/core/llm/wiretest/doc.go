// Package wiretest validates requests like model services do. [Anthropic],
// [OpenAI] and [Compatible] return why a service would reject a request.
// [Services] are services that deviate from the format, each with its own rules
// and response format. The tests of dialects and their fakes are in llmtest.
package wiretest
