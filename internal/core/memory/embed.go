package memory

import (
	"context"
	"errors"
)

// Purpose is what a text is embedded for. Some models embed questions and the texts that
// answer them in different ways.
type Purpose string

// The purposes.
const (
	Question Purpose = "query"
	Document Purpose = "document"
)

// Embedder turns texts into vectors. The vectors of texts with similar meanings have
// similar directions.
//
// It is safe for concurrent use. Embed returns one vector for each text, all of the same
// length, or an error; it repeats requests that failed for a moment, as long as ctx
// allows. Errors contain no secrets.
type Embedder interface {
	Embed(ctx context.Context, p Purpose, texts []string) ([][]float32, error)
	// Model names what makes the vectors: PROVIDER/MODEL, and the server if it is not
	// the provider's own. Vectors of different models cannot be compared.
	Model() string
}

// ErrUnavailable reports that the chosen provider of vectors does not answer.
var ErrUnavailable = errors.New("memory search is unavailable")

// Vectors is the state of the vectors of an index.
type Vectors struct {
	Model     string `json:"model"`
	Dimension int    `json:"dimensions,omitempty"` // 0: not known yet
	Ready     int    `json:"ready"`                // chunks with a vector
	Waiting   int    `json:"waiting"`              // chunks that have none yet
	Problem   string `json:"problem,omitempty"`    // why there are no vectors, or no more; "": there is no problem
}

// Progress is how far the notes have been read for the index.
type Progress struct {
	Done int `json:"done"` // files
	All  int `json:"all"`
}
