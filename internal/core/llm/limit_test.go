package llm

import "testing"

func TestNamedLimit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.": 8192,
		"prompt is too long: 210000 tokens > 200000 maximum":                                                  200_000,
		"the request exceeds the available context size (16,384 tokens), try increasing it":                   16_384,
		"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).":             1_048_576,
		"Trying to keep the first 9000 tokens when context length is only 4096 tokens":                        4096,
		"input is too long: the limit is 131_072 tokens":                                                      131_072,
		"prompt is too long":                             0,
		"maximum context length is 12":                   0,
		"maximum context length is 99999999999999999999": 0,
	} {
		if got := NamedLimit(text); got != want {
			t.Errorf("NamedLimit(%q) = %d, want %d", text, got, want)
		}
	}
}

func FuzzNamedLimit(f *testing.F) {
	f.Add("maximum context length is 8192 tokens")
	f.Add("> ,_ maximum")
	f.Fuzz(func(t *testing.T, s string) {
		if n := NamedLimit(s); n != 0 && (n < minLimit || n > maxLimit) {
			t.Errorf("NamedLimit(%q) = %d", s, n)
		}
	})
}
