package tool

import (
	"encoding/json"
	"fmt"

	"github.com/chela-ai/chela/internal/llm"
)

// Value returns the result that v is, for tools whose outcome is data: a
// Result and parts as they are, a string as text, nil as nothing, and all else
// as JSON, which is then also the details.
func Value(v any) Result {
	switch v := v.(type) {
	case Result:
		return v
	case []llm.Part:
		return Result{Content: v}
	case nil:
		return Result{}
	case string:
		return Text(v)
	case error:
		r := Text(v.Error())
		r.IsError = true
		return r
	}
	b, err := json.Marshal(v)
	if err != nil {
		return Text(fmt.Sprint(v))
	}
	r := Text(string(b))
	r.Details = b
	return r
}
