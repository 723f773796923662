package tool

import (
	"encoding/json"
	"fmt"

	"github.com/chela-ai/chela/internal/core/llm"
)

// Value converts v to a result. A Result and parts are used unchanged, a string
// becomes text, an error becomes an error result, and nil an empty result. Any
// other value is encoded as JSON, which is also used as the details.
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
