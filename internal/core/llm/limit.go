package llm

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// limitPatterns match the limit in errors about prompts that are too long, as services
// write them.
var limitPatterns = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		// OpenAI, vLLM, Mistral
		regexp.MustCompile(`maximum context length (?:is|of) ([\d,_]+)`),
		regexp.MustCompile(`> ([\d,_]+) maximum`),                            // Anthropic
		regexp.MustCompile(`available context size \(([\d,_]+)`),             // llama.cpp
		regexp.MustCompile(`maximum number of tokens allowed \(([\d,_]+)\)`), // Gemini
		// LM Studio, Ollama, others
		regexp.MustCompile(`context (?:length|window|limit|size)(?: is| of|:|=)? (?:only )?([\d,_]+)`),
		regexp.MustCompile(`(?:limit|maximum) (?:is|of) ([\d,_]+) tokens`),
	}
})

// Limits that are believed, in tokens.
const (
	minLimit = 1 << 10
	maxLimit = 100 << 20
)

// NamedLimit returns the size of the context in tokens that a service named in the
// message of an error; 0: none.
func NamedLimit(message string) int {
	text := strings.ToLower(message)
	for _, p := range limitPatterns() {
		m := p.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(strings.NewReplacer(",", "", "_", "").Replace(m[1]))
		if err == nil && n >= minLimit && n <= maxLimit {
			return n
		}
	}
	return 0
}
