package compact

import (
	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/session"
)

// Sizes of what a model summarizes in one call, as parts of its window.
const (
	baseChunkRatio = 0.4
	minChunkRatio  = 0.15
	safetyMargin   = 1.2 // estimates may be too low by this factor
	largeMean      = 0.1 // mean size of a message above which chunks are smaller
	oversized      = 0.5 // size of a message that is not summarized
)

// SummaryTokens is the maximum size of a summary for a model with the window.
func SummaryTokens(window int) int { return min(max(window/16, 512), 8192) }

// examTokens is the maximum size of the facts that the exam puts back.
func examTokens(window int) int { return min(max(window/20, 200), 4000) }

// ChunkRatio returns the part of a window that a chunk may use. It is smaller if the
// messages are large on average.
func ChunkRatio(entries []session.Entry, window int) float64 {
	if len(entries) == 0 || window <= 0 {
		return baseChunkRatio
	}
	total := 0
	for i := range entries {
		total += estimate.Messages(entries[i].Message)
	}
	mean := float64(total) / float64(len(entries)) * safetyMargin / float64(window)
	if mean <= largeMean {
		return baseChunkRatio
	}
	return max(minChunkRatio, baseChunkRatio-min(2*mean, baseChunkRatio-minChunkRatio))
}

// Oversized reports whether a message is too large for a summary by a model with the
// window.
func Oversized(tokens, window int) bool {
	return float64(tokens)*safetyMargin > oversized*float64(window)
}

// Chunks divides texts into chunks of at most limit tokens, with a margin for errors of
// the estimates. A text that is larger than a chunk loses its middle.
func Chunks(texts []string, limit int) [][]string {
	fit := max(int(float64(limit)/safetyMargin), 1)
	var chunks [][]string
	size := 0
	for _, t := range texts {
		n := estimate.Text(t) + 1
		if n > fit {
			t = Shorten(t, max((fit-1)*estimate.BytesPerToken, 1))
			n = estimate.Text(t) + 1
		}
		if len(chunks) == 0 || size+n > fit {
			chunks, size = append(chunks, nil), 0
		}
		chunks[len(chunks)-1] = append(chunks[len(chunks)-1], t)
		size += n
	}
	return chunks
}
