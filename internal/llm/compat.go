package llm

// Compat is what a model's service does differently, as
// models.providers.<id>.models[].compat of the configuration says it. What is
// nil or empty is left to what is known of the service.
type Compat struct {
	SupportsTools      *bool `json:"supportsTools,omitempty"`      // false: it is told of no tool
	SupportsStrictMode *bool `json:"supportsStrictMode,omitempty"` // it takes the field strict of a tool

	// What a request may hold; nil: as is known of the service.
	SupportsUsageInStreaming *bool  `json:"supportsUsageInStreaming,omitempty"` // it may be asked for its usage
	SupportsDeveloperRole    *bool  `json:"supportsDeveloperRole,omitempty"`
	SupportsPromptCacheKey   *bool  `json:"supportsPromptCacheKey,omitempty"`
	SupportsReasoningEffort  *bool  `json:"supportsReasoningEffort,omitempty"`
	SupportsTemperature      *bool  `json:"supportsTemperature,omitempty"`
	MaxTokensField           string `json:"maxTokensField,omitempty"` // max_tokens or max_completion_tokens

	// What its messages must be like.
	RequiresStringContent            *bool `json:"requiresStringContent,omitempty"`            // no parts, so no images
	RequiresToolResultName           *bool `json:"requiresToolResultName,omitempty"`           // a result names its tool
	RequiresAssistantAfterToolResult *bool `json:"requiresAssistantAfterToolResult,omitempty"` // the user does not speak next
	// RequiresReasoningContent: an answer that is sent back bears its thinking.
	RequiresReasoningContent *bool `json:"requiresReasoningContentOnAssistantMessages,omitempty"`

	// How it is told to think: openai, openrouter, deepseek, zai, qwen,
	// qwen-chat-template or together; the levels that it takes, and its words for
	// them.
	ThinkingFormat            string            `json:"thinkingFormat,omitempty"`
	SupportedReasoningEfforts []string          `json:"supportedReasoningEfforts,omitempty"`
	ReasoningEffortMap        map[string]string `json:"reasoningEffortMap,omitempty"`

	// ToolSchemaProfile names what it takes of JSON Schema: see package schema.
	ToolSchemaProfile             string   `json:"toolSchemaProfile,omitempty"`
	UnsupportedToolSchemaKeywords []string `json:"unsupportedToolSchemaKeywords,omitempty"` // that it refuses beyond that

	// ToolCallArgumentsEncoding is "html-entities" when texts in arguments come
	// with &amp; for &.
	ToolCallArgumentsEncoding string `json:"toolCallArgumentsEncoding,omitempty"`
}

// Tools reports whether the model can be told of tools.
func (c Compat) Tools() bool { return c.SupportsTools == nil || *c.SupportsTools }
