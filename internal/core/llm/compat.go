package llm

// Compat describes how a model's service deviates, from
// models.providers.<id>.models[].compat of the configuration. Nil and empty
// fields take the defaults for the service.
type Compat struct {
	SupportsTools      *bool `json:"supportsTools,omitempty"`      // false: requests have no tools
	SupportsStrictMode *bool `json:"supportsStrictMode,omitempty"` // the service accepts the field strict of a tool

	// Optional fields of a request. Nil: the default for the service.
	SupportsUsageInStreaming *bool  `json:"supportsUsageInStreaming,omitempty"` // streams can report usage
	SupportsDeveloperRole    *bool  `json:"supportsDeveloperRole,omitempty"`
	SupportsPromptCacheKey   *bool  `json:"supportsPromptCacheKey,omitempty"`
	SupportsReasoningEffort  *bool  `json:"supportsReasoningEffort,omitempty"`
	SupportsTemperature      *bool  `json:"supportsTemperature,omitempty"`
	MaxTokensField           string `json:"maxTokensField,omitempty"` // max_tokens or max_completion_tokens

	// Requirements on messages.
	// content is a string, without parts or images
	RequiresStringContent *bool `json:"requiresStringContent,omitempty"`
	// a tool result has the tool's name
	RequiresToolResultName *bool `json:"requiresToolResultName,omitempty"`
	// an assistant message must follow tool results
	RequiresAssistantAfterToolResult *bool `json:"requiresAssistantAfterToolResult,omitempty"`
	// RequiresReasoningContent: assistant messages sent back include their
	// thinking.
	RequiresReasoningContent *bool `json:"requiresReasoningContentOnAssistantMessages,omitempty"`

	// ThinkingFormat is the way to request thinking: openai, openrouter,
	// deepseek, zai, qwen, qwen-chat-template or together. The next fields are
	// the supported levels and the service's names for them.
	ThinkingFormat            string            `json:"thinkingFormat,omitempty"`
	SupportedReasoningEfforts []string          `json:"supportedReasoningEfforts,omitempty"`
	ReasoningEffortMap        map[string]string `json:"reasoningEffortMap,omitempty"`

	// ToolSchemaProfile names the supported subset of JSON Schema: see package
	// schema.
	ToolSchemaProfile string `json:"toolSchemaProfile,omitempty"`
	// further keywords that it rejects
	UnsupportedToolSchemaKeywords []string `json:"unsupportedToolSchemaKeywords,omitempty"`

	// ToolCallArgumentsEncoding is "html-entities" if text in arguments has
	// &amp; for &.
	ToolCallArgumentsEncoding string `json:"toolCallArgumentsEncoding,omitempty"`
}

// Tools reports whether requests may have tools.
func (c Compat) Tools() bool { return c.SupportsTools == nil || *c.SupportsTools }
