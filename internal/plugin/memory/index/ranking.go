package index

// Ranking is how the chunks that answer a question are compared.
type Ranking struct {
	// The score of a chunk with a vector is the weighted mean of the similarity of its
	// vector and of its words.
	VectorWeight, TextWeight float64
	VectorsAlone             bool    // words do not count, when there are vectors
	Multiplier               int     // chunks that are compared for each one that is returned
	Diversity                bool    // what says nearly the same as a better chunk comes later
	Lambda                   float64 // of maximal marginal relevance: 1 is no diversity
	Decay                    bool    // newer daily notes come before older ones
	HalfLife                 float64 // days after which a daily note has lost half of freshness
}

// DefaultRanking returns the ranking that is used if none is configured.
func DefaultRanking() Ranking {
	return Ranking{
		VectorWeight: 0.7,
		TextWeight:   0.3,
		Multiplier:   4,
		Diversity:    true,
		Lambda:       0.7,
		Decay:        true,
		HalfLife:     30,
	}
}
