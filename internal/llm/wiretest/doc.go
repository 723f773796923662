// Package wiretest is what model services take: [Anthropic], [OpenAI] and
// [Compatible] say why a service would refuse the body of a request, and
// [Services] are those that depart from the format, each with its own rules and
// its own way to answer. Its tests of dialects and its fakes are in llmtest.
package wiretest
