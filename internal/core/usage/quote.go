package usage

import (
	"cmp"
	"math"

	"github.com/chela-ai/chela/internal/core/llm"
)

// MinOutput is the number of tokens below which the limit of an answer is not lowered to
// make its call fit a budget.
const MinOutput = 1024

// Quote is what a model call may cost at most.
type Quote struct {
	Prices []llm.Price // of the models that may answer
	Prompt int64       // tokens of the prompt
	Output int64       // limit of the answer in tokens
	Floor  int64       // to which Output may be lowered to fit a budget; 0: MinOutput
}

// Nano returns the highest cost, in billionths of a dollar, of a call whose answer has at
// most the given tokens.
func (q Quote) Nano(output int64) int64 {
	most := int64(0)
	for _, p := range q.Prices {
		most = max(most, int64(math.Ceil(1000*(float64(q.Prompt)*promptPrice(p)+float64(output)*p.Output))))
	}
	return most
}

// floor returns the lowest limit of the answer.
func (q Quote) floor() int64 { return min(cmp.Or(q.Floor, MinOutput), q.Output) }

// promptPrice returns the highest price of tokens of a prompt.
func promptPrice(p llm.Price) float64 { return max(p.Input, p.CacheWrite, p.CacheRead) }

// Fit returns the longest answer whose call costs at most nano: the limit of the answer,
// or fewer tokens, down to MinOutput. It reports false if even that costs more.
func (q Quote) Fit(nano int64) (output int64, ok bool) {
	output = q.Output
	for _, p := range q.Prices {
		left := float64(nano)/1000 - float64(q.Prompt)*promptPrice(p)
		if left < 0 {
			return 0, false
		}
		if p.Output > 0 {
			output = min(output, int64(left/p.Output))
		}
	}
	for output > 0 && q.Nano(output) > nano { // rounding
		output--
	}
	return output, output >= q.floor()
}
