package openai

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
)

// quirks are the deviations of a service. The zero quirks suit every server of
// the format.
type quirks struct {
	// Request.
	limit          string                // field that limits the answer; "": max_tokens
	noUsage        bool                  // rejects stream_options; reports usage anyway
	developer      bool                  // system prompt of a thinking model has role developer
	cacheKey       bool                  // accepts prompt_cache_key
	tier           bool                  // accepts the service_tier priority
	markers        bool                  // accepts cache markers, for models of anthropic/
	ownTemperature ownTemperature        // which models reject a temperature
	maxTemp        float64               // maximum temperature; 0: 2
	form           form                  // how thinking is requested
	words          map[llm.Level]string  // names of levels; default: the level itself
	modelWords     map[string]quirkWords // the same, by prefix of the model's id
	header         map[string]string     // sent with each request

	// Messages.
	callID        int    // required length of call ids, letters and digits; 0: up to 40 characters
	empty         string // content of an assistant message with only calls; "": null
	stringContent bool   // content must be a string, without parts
	resultName    bool   // a tool result has the tool's name
	bridge        bool   // an assistant message must follow tool results
	merge         bool   // roles must alternate
	thinkingField string // field in which thinking that led to calls is sent back; "": none
	demands       demand // which assistant messages must have that field
	blank         string // what stands there for thinking that is not known

	unknown bool // neither the host nor the provider's name says which service it is

	// Answers.
	tags bool // thinking may be in tags at the beginning of the text
}

// demand is which assistant messages must have their thinking, also those of other
// providers.
type demand int

// Values of demand.
const (
	ofNone  demand = iota
	ofCalls        // those with calls
	ofAll
)

const (
	reasoning = "reasoning_content" // the usual field for thinking
	// space is the least that Moonshot does not take for a missing field
	// (https://github.com/theopenco/llmgateway/pull/2093).
	space = " "
)

type quirkWords = map[llm.Level]string

// ownTemperature is which models have a fixed temperature and reject others.
type ownTemperature int

// Values of ownTemperature.
const (
	ownNone ownTemperature = iota
	ownOn                  // if thinking is requested
	ownAble                // if the model can think
	ownAll
)

// form is how a service is asked to think, as in compat.thinkingFormat.
type form string

// Forms.
const (
	noForm    form = ""                   // not at all
	effort    form = "openai"             // reasoning_effort
	router    form = "openrouter"         // reasoning: {effort}
	deepseek  form = "deepseek"           // thinking: {type}, and reasoning_effort
	switched  form = "zai"                // thinking: {type}
	enabled   form = "qwen"               // enable_thinking
	templated form = "qwen-chat-template" // chat_template_kwargs: {enable_thinking}
	toggled   form = "together"           // reasoning: {enabled}
)

// details is the field of a router for thinking in its original pieces with
// their signatures.
const details = "reasoning_details"

// service is a row of the table of quirks.
type service struct {
	hosts  []string // domains; none: a self-hosted server
	ids    []string // ids of providers, or words of them, at other hosts, such as a proxy
	quirks quirks
}

// services are the services with known quirks. Chat templates of self-hosted
// models are strict about roles, and their servers fail if a template does.
var services = [...]service{
	{hosts: []string{"api.openai.com"}, quirks: quirks{
		limit: "max_completion_tokens", developer: true, cacheKey: true, tier: true, ownTemperature: ownAble, form: effort,
	}},
	{hosts: []string{"openrouter.ai"}, ids: []string{"openrouter"}, quirks: quirks{
		markers: true, form: router, thinkingField: details, tags: true,
		header: map[string]string{"HTTP-Referer": "https://github.com/chela-ai/chela", "X-Title": "Chela"},
	}},
	{hosts: []string{"groq.com"}, ids: []string{"groq"}, quirks: quirks{
		limit: "max_completion_tokens", form: effort, tags: true,
		modelWords: map[string]quirkWords{"qwen/": {llm.Off: "none", llm.Adaptive: "default"}},
	}},
	{hosts: []string{"deepseek.com"}, ids: []string{"deepseek"}, quirks: quirks{
		form: deepseek, words: map[llm.Level]string{llm.High: "high", llm.XHigh: "max", llm.Max: "max"},
		thinkingField: reasoning, demands: ofAll,
	}},
	{hosts: []string{"moonshot.ai", "moonshot.cn"}, ids: []string{"moonshot", "moonshotai", "kimi"},
		quirks: quirks{thinkingField: reasoning, demands: ofCalls, blank: space, tags: true}},
	{hosts: []string{"mistral.ai"}, ids: []string{"mistral"}, quirks: quirks{
		noUsage:        true,
		maxTemp:        1.5,
		ownTemperature: ownOn,
		form:           effort,
		words:          map[llm.Level]string{llm.Off: "none", llm.High: "high"},
		callID:         9,
		bridge:         true,
	}},
	{hosts: []string{"z.ai", "bigmodel.cn"}, ids: []string{"zai", "z-ai", "zhipu", "bigmodel"},
		quirks: quirks{form: switched, tags: true}},
	{hosts: []string{"together.ai", "together.xyz"}, ids: []string{"together", "togetherai"},
		quirks: quirks{form: toggled, tags: true}},
	{ids: []string{"vllm", "llamacpp", "llama-cpp"},
		quirks: quirks{form: templated, bridge: true, merge: true, tags: true}},
	{ids: []string{"lmstudio"}, quirks: quirks{form: effort, bridge: true, merge: true, tags: true}},
	{ids: []string{"ollama"}, quirks: quirks{
		form: effort, words: map[llm.Level]string{llm.Off: "none", llm.Low: "low", llm.Medium: "medium", llm.High: "high"},
		empty: `""`, tags: true,
	}},
}

// quirksOf returns the quirks of the service with the host, or else of the one that
// the provider's id names.
func quirksOf(id, host string) quirks {
	host = strings.ToLower(host)
	at := func(domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) }
	for i := range services {
		if slices.ContainsFunc(services[i].hosts, at) {
			return services[i].quirks
		}
	}
	for i := range services {
		if names(id, services[i].ids...) {
			return services[i].quirks
		}
	}
	return quirks{tags: true, unknown: true}
}

// names reports whether an id, or a word of it, is one of the words.
func names(id string, words ...string) bool {
	id = strings.ToLower(id)
	is := func(s string) bool { return slices.Contains(words, s) }
	return is(id) ||
		slices.ContainsFunc(strings.FieldsFunc(id, func(r rune) bool { return strings.ContainsRune("-_./: ", r) }), is)
}

// of returns q with what the models of a family require of an unknown service.
func (q quirks) of(model string) quirks {
	if !q.unknown {
		return q
	}
	switch {
	case names(model, "deepseek"):
		q.thinkingField, q.demands = reasoning, ofAll
	case names(model, "kimi", "moonshotai", "moonshot"):
		q.thinkingField, q.demands, q.blank = reasoning, ofCalls, space
	}
	return q
}

// forms are the valid values of compat.thinkingFormat.
var forms = [...]form{effort, router, deepseek, switched, enabled, templated, toggled}

// with returns q overridden by the configuration of a model.
func (q quirks) with(c *llm.Compat) *quirks {
	set := func(to, from *bool, not bool) {
		if from != nil {
			*to = *from != not
		}
	}
	set(&q.noUsage, c.SupportsUsageInStreaming, true)
	set(&q.developer, c.SupportsDeveloperRole, false)
	set(&q.cacheKey, c.SupportsPromptCacheKey, false)
	set(&q.stringContent, c.RequiresStringContent, false)
	set(&q.resultName, c.RequiresToolResultName, false)
	set(&q.bridge, c.RequiresAssistantAfterToolResult, false)
	q.limit = cmp.Or(c.MaxTokensField, q.limit)
	if warm := c.SupportsTemperature; warm != nil {
		q.ownTemperature = ownNone
		if !*warm {
			q.ownTemperature = ownAll
		}
	}
	if r := c.RequiresReasoningContent; r != nil {
		if q.thinkingField, q.demands = "", ofNone; *r {
			q.thinkingField, q.demands = reasoning, ofAll
		}
	}
	q.form = q.formOf(c)
	if len(c.SupportedReasoningEfforts)+len(c.ReasoningEffortMap) > 0 {
		q.words, q.modelWords = q.wordsOf(c), nil
	}
	return &q
}

func (q *quirks) formOf(c *llm.Compat) form {
	said := c.SupportsReasoningEffort
	switch f := form(c.ThinkingFormat); {
	case slices.Contains(forms[:], f):
		return f
	case said != nil && !*said && q.form == effort:
		return noForm
	case said != nil && *said && q.form == noForm, len(c.SupportedReasoningEfforts)+len(c.ReasoningEffortMap) > 0 &&
		q.form == noForm:
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
