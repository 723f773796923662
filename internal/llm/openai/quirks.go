package openai

import (
	"cmp"
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
	own       own                   // which models have a temperature of their own
	maxTemp   float64               // the highest temperature; 0: 2
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

// own says which models have a temperature of their own, and take no other.
type own int

// The models.
const (
	ownNone own = iota
	ownOn       // those that are told to think
	ownAble     // those that can think
	ownAll
)

// form is how a service wants to be told how much to think, in the words of
// compat.thinkingFormat.
type form string

// The forms.
const (
	untold    form = ""                   // it is not told
	effort    form = "openai"             // reasoning_effort
	router    form = "openrouter"         // reasoning: {effort}
	deepseek  form = "deepseek"           // thinking: {type}, and reasoning_effort
	switched  form = "zai"                // thinking: {type}
	enabled   form = "qwen"               // enable_thinking
	templated form = "qwen-chat-template" // chat_template_kwargs: {enable_thinking}
	toggled   form = "together"           // reasoning: {enabled}
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
		limit: "max_completion_tokens", developer: true, cacheKey: true, own: ownAble, form: effort,
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
		noUsage: true, maxTemp: 1.5, own: ownOn, form: effort, words: map[llm.Level]string{llm.Off: "none", llm.High: "high"},
		callID: 9, bridge: true,
	}},
	{hosts: []string{"z.ai", "bigmodel.cn"}, quirks: quirks{form: switched, tags: true}},
	{hosts: []string{"together.ai", "together.xyz"}, quirks: quirks{form: toggled, tags: true}},
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
	at := func(domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) }
	for i := range services {
		if slices.ContainsFunc(services[i].hosts, at) {
			return services[i].quirks
		}
	}
	for i := range services {
		if slices.Contains(services[i].ids, strings.ToLower(id)) {
			return services[i].quirks
		}
	}
	return quirks{tags: true}
}

// forms are the words that compat.thinkingFormat may be.
var forms = [...]form{effort, router, deepseek, switched, enabled, templated, toggled}

// with returns q with what is configured of a model in place of what is known of
// the service.
func (q quirks) with(c *llm.Compat) *quirks {
	set := func(to, from *bool, not bool) {
		if from != nil {
			*to = *from != not
		}
	}
	set(&q.noUsage, c.SupportsUsageInStreaming, true)
	set(&q.developer, c.SupportsDeveloperRole, false)
	set(&q.cacheKey, c.SupportsPromptCacheKey, false)
	set(&q.texts, c.RequiresStringContent, false)
	set(&q.named, c.RequiresToolResultName, false)
	set(&q.bridge, c.RequiresAssistantAfterToolResult, false)
	q.limit = cmp.Or(c.MaxTokensField, q.limit)
	if warm := c.SupportsTemperature; warm != nil {
		q.own = ownNone
		if !*warm {
			q.own = ownAll
		}
	}
	if r := c.RequiresReasoningContent; r != nil {
		if q.replay, q.demands = "", *r; *r {
			q.replay = "reasoning_content"
		}
	}
	q.form = q.formOf(c)
	if len(c.SupportedReasoningEfforts)+len(c.ReasoningEffortMap) > 0 {
		q.words, q.of = q.wordsOf(c), nil
	}
	return &q
}

func (q *quirks) formOf(c *llm.Compat) form {
	said := c.SupportsReasoningEffort
	switch f := form(c.ThinkingFormat); {
	case slices.Contains(forms[:], f):
		return f
	case said != nil && !*said && q.form == effort:
		return untold
	case said != nil && *said && q.form == untold, len(c.SupportedReasoningEfforts)+len(c.ReasoningEffortMap) > 0 && q.form == untold:
		return effort
	}
	return q.form
}

func (q *quirks) wordsOf(c *llm.Compat) map[llm.Level]string {
	words := maps.Clone(q.words)
	if len(c.SupportedReasoningEfforts) > 0 || words == nil {
		words = map[llm.Level]string{}
	}
	for _, e := range c.SupportedReasoningEfforts {
		if e == "none" {
			words[llm.Off] = e
		} else {
			words[llm.Level(e)] = e
		}
	}
	for level, word := range c.ReasoningEffortMap {
		words[llm.Level(level)] = word
	}
	return words
}
