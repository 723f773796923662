package openai

import (
	"maps"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/llm"
)

// quirks are what a service does in its own way. The zero quirks are sent what
// every server of the format takes.
type quirks struct {
	// Of the request.
	limit     string                // the field that bounds an answer; "": max_tokens
	noUsage   bool                  // refuses to be asked for its usage, and tells it all the same
	developer bool                  // the prompt of a model that thinks is the developer's
	cacheKey  bool                  // takes prompt_cache_key
	markers   bool                  // takes cache markers, for models of anthropic/
	noTemp    bool                  // takes no temperature
	maxTemp   float64               // the highest temperature; 0: 2
	ownTemp   bool                  // what thinks has a temperature of its own
	noTools   bool                  // takes no tools
	form      form                  // how a model is told to think
	words     map[llm.Level]string  // its words for levels; a level without one is its own
	of        map[string]quirkWords // likewise, for the models whose ids begin so
	header    map[string]string     // sent with each request

	// Of messages.
	callID  int    // ids of calls are so many letters and digits; 0: any of 40 characters at most
	empty   string // the content of an answer that only calls; "": null
	texts   bool   // content is text: there are no parts
	named   bool   // a result names its tool
	bridge  bool   // between results and the user's next words stands an answer
	merge   bool   // the user never writes twice in a row, and neither does the model
	replay  string // the field in which it wants the thinking back that led to calls; "": none
	demands bool   // it refuses an answer without that field while it thinks

	// Of answers.
	tags bool // a model's thinking may stand between tags, before its text
}

type quirkWords = map[llm.Level]string

// form is how a service wants to be told how much to think, in the words of
// compat.thinkingFormat.
type form string

// The forms.
const (
	untold       form = ""                   // it is not told
	effort       form = "openai"             // reasoning_effort
	router       form = "openrouter"         // reasoning: {effort}
	deepseek     form = "deepseek"           // thinking: {type}, and reasoning_effort
	switched     form = "zai"                // thinking: {type}
	enabled      form = "qwen"               // enable_thinking
	templated    form = "qwen-chat-template" // chat_template_kwargs: {enable_thinking}
	reasoningOff form = "together"           // reasoning: {enabled}
)

// details is the field of a router in which thinking goes back as it came, in
// pieces with their signatures.
const details = "reasoning_details"

// service is a row of the table: whose quirks they are.
type service struct {
	hosts  []string // domains; none: a server that people run, known by the provider's id
	ids    []string
	quirks quirks
}

// services are those whose ways are known. Templates of the models that people
// run themselves are strict about whose turn it is, and the servers that render
// them fail where they do.
var services = [...]service{
	{hosts: []string{"api.openai.com"}, quirks: quirks{
		limit: "max_completion_tokens", developer: true, cacheKey: true, ownTemp: true, form: effort,
	}},
	{hosts: []string{"openrouter.ai"}, quirks: quirks{
		markers: true, form: router, replay: details, tags: true,
		header: map[string]string{"HTTP-Referer": "https://github.com/chela-ai/chela", "X-Title": "Chela"},
	}},
	{hosts: []string{"groq.com"}, quirks: quirks{
		limit: "max_completion_tokens", form: effort, tags: true,
		of: map[string]quirkWords{"qwen/": {llm.Off: "none", llm.Adaptive: "default"}},
	}},
	{hosts: []string{"deepseek.com"}, quirks: quirks{
		form: deepseek, words: map[llm.Level]string{llm.High: "high", llm.XHigh: "max", llm.Max: "max"},
		replay: "reasoning_content", demands: true,
	}},
	{hosts: []string{"moonshot.ai", "moonshot.cn"}, quirks: quirks{replay: "reasoning_content", tags: true}},
	{hosts: []string{"mistral.ai"}, quirks: quirks{
		noUsage: true, maxTemp: 1.5, ownTemp: true, form: effort, words: map[llm.Level]string{llm.Off: "none", llm.High: "high"},
		callID: 9, bridge: true,
	}},
	{hosts: []string{"z.ai", "bigmodel.cn"}, quirks: quirks{form: switched, tags: true}},
	{hosts: []string{"together.ai", "together.xyz"}, quirks: quirks{form: reasoningOff, tags: true}},
	{ids: []string{"vllm", "llamacpp", "llama-cpp"}, quirks: quirks{form: templated, bridge: true, merge: true, tags: true}},
	{ids: []string{"lmstudio"}, quirks: quirks{form: effort, bridge: true, merge: true, tags: true}},
	{ids: []string{"ollama"}, quirks: quirks{
		form: effort, words: map[llm.Level]string{llm.Off: "none", llm.Low: "low", llm.Medium: "medium", llm.High: "high"},
		empty: `""`, tags: true,
	}},
}

// quirksOf returns what is known of the service at a host, or of the server
// that a provider's id says it is.
func quirksOf(id, host string) quirks {
	host = strings.ToLower(host)
	for i := range services {
		s := &services[i]
		at := slices.ContainsFunc(s.hosts, func(domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) })
		if at || slices.Contains(s.ids, strings.ToLower(id)) && !hosted(host) {
			return s.quirks
		}
	}
	return quirks{tags: true}
}

// hosted reports whether a service whose ways are known is at the host.
func hosted(host string) bool {
	return slices.ContainsFunc(services[:], func(s service) bool {
		return slices.ContainsFunc(s.hosts, func(domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) })
	})
}

// Compat is what the configuration says of a service's ways, in place of what
// is known of them. What it leaves out stays.
type Compat struct {
	MaxTokensField string `json:"maxTokensField"` // max_tokens or max_completion_tokens
	ThinkingFormat string `json:"thinkingFormat"` // openai, openrouter, deepseek, zai, qwen, qwen-chat-template, together

	UsageInStreaming *bool `json:"supportsUsageInStreaming"`
	DeveloperRole    *bool `json:"supportsDeveloperRole"`
	PromptCacheKey   *bool `json:"supportsPromptCacheKey"`
	ReasoningEffort  *bool `json:"supportsReasoningEffort"`
	Temperature      *bool `json:"supportsTemperature"`
	Tools            *bool `json:"supportsTools"`

	StringContent    *bool `json:"requiresStringContent"`
	ToolResultName   *bool `json:"requiresToolResultName"`
	AssistantAfter   *bool `json:"requiresAssistantAfterToolResult"`
	ReasoningContent *bool `json:"requiresReasoningContentOnAssistantMessages"`

	Efforts   []string          `json:"supportedReasoningEfforts"`
	EffortMap map[string]string `json:"reasoningEffortMap"` // a level's word
}

// forms are the words that ThinkingFormat may be.
var forms = [...]form{effort, router, deepseek, switched, enabled, templated, reasoningOff}

// over returns q with what c says instead.
func (c *Compat) over(q quirks) quirks {
	set := func(to, from *bool, not bool) {
		if from != nil {
			*to = *from != not
		}
	}
	set(&q.noUsage, c.UsageInStreaming, true)
	set(&q.developer, c.DeveloperRole, false)
	set(&q.cacheKey, c.PromptCacheKey, false)
	set(&q.noTemp, c.Temperature, true)
	set(&q.noTools, c.Tools, true)
	set(&q.texts, c.StringContent, false)
	set(&q.named, c.ToolResultName, false)
	set(&q.bridge, c.AssistantAfter, false)
	if c.MaxTokensField != "" {
		q.limit = c.MaxTokensField
	}
	if r := c.ReasoningContent; r != nil {
		if q.replay, q.demands = "", *r; *r {
			q.replay = "reasoning_content"
		}
	}
	switch f := form(c.ThinkingFormat); {
	case slices.Contains(forms[:], f):
		q.form = f
	case c.ReasoningEffort != nil && !*c.ReasoningEffort && q.form == effort:
		q.form = untold
	case c.ReasoningEffort != nil && *c.ReasoningEffort && q.form == untold, len(c.Efforts)+len(c.EffortMap) > 0 && q.form == untold:
		q.form = effort
	}
	return c.overWords(q)
}

// overWords replaces the words for levels.
func (c *Compat) overWords(q quirks) quirks {
	if len(c.Efforts) == 0 && len(c.EffortMap) == 0 {
		return q
	}
	words := maps.Clone(q.words)
	if len(c.Efforts) > 0 || words == nil {
		words = map[llm.Level]string{}
	}
	for _, e := range c.Efforts {
		if e == "none" {
			words[llm.Off] = e
		} else {
			words[llm.Level(e)] = e
		}
	}
	for level, word := range c.EffortMap {
		words[llm.Level(level)] = word
	}
	q.words, q.of = words, nil
	return q
}
