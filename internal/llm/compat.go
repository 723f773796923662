package llm

// Compat is what a model's service does differently, as
// models.providers.<id>.models[].compat of the configuration says it. What is
// nil or empty is left to what is known of the service.
type Compat struct {
	SupportsTools      *bool `json:"supportsTools,omitempty"`      // false: it is told of no tool
	SupportsStrictMode *bool `json:"supportsStrictMode,omitempty"` // it takes the field strict of a tool

	// ToolSchemaProfile names what it takes of JSON Schema: see package schema.
	ToolSchemaProfile             string   `json:"toolSchemaProfile,omitempty"`
	UnsupportedToolSchemaKeywords []string `json:"unsupportedToolSchemaKeywords,omitempty"` // that it refuses beyond that

	// ToolCallArgumentsEncoding is "html-entities" when texts in arguments come
	// with &amp; for &.
	ToolCallArgumentsEncoding string `json:"toolCallArgumentsEncoding,omitempty"`
}

// Tools reports whether the model can be told of tools.
func (c Compat) Tools() bool { return c.SupportsTools == nil || *c.SupportsTools }
