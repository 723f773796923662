// Package plugin is the folder of implementations of the contracts in core:
// model providers (llm), tools, channels, stores, sandboxes.
//
// A plug-in imports core and kit only, never the engine, a surface, or a plug-in of
// another kind. Plug-ins of one kind share code in that kind's folder, such as
// llm/dialect. Each passes the conformance suite of its contract (llmtest, tooltest,
// storetest, …) and is registered by one line in app/standard.
package plugin
