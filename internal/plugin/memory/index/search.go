package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/chela-ai/chela/internal/core/memory"
)

const (
	candidates  = 80   // chunks that are compared with a question by their words
	maxQuestion = 4000 // bytes
	maxHits     = 50
	shortest    = 5    // bytes of a word that is also found in other forms
	pair        = 0.5  // weight of a character of a run: a word has about two
	light       = 0.5  // weight of a common word
	partly      = 0.7  // of a word that is found in a shorter or longer form
	enough      = 2.6  // rarest words: what a chunk contains of a long question for its full score
	closeness   = 0.06 // of how much of a chunk is about the question
	freshness   = 0.08 // share of a score that depends on the age of a dated note
)

// A candidate is a chunk that may answer a question.
type candidate struct {
	memory.Hit
	id    int64
	hash  string
	text  string
	terms map[string]int
	count int
	order float64 // of candidates: better ones first
}

// Search implements [memory.Index].
func (x *Index) Search(ctx context.Context, q memory.Query) ([]memory.Hit, error) {
	hits, err := x.search(ctx, q)
	if err != nil && !errors.Is(err, memory.ErrUnavailable) {
		return nil, fmt.Errorf("memory index: %w", err)
	}
	return hits, err
}

func (x *Index) search(ctx context.Context, q memory.Query) ([]memory.Hit, error) {
	most, least := cmp.Or(q.Max, memory.DefaultMax), cmp.Or(q.MinScore, memory.DefaultMinScore)
	most = min(max(most, 1), maxHits)
	text := q.Text[:min(len(q.Text), maxQuestion)]
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	ask := x.askVector(ctx, text)
	var embedded <-chan struct{}
	waiting := 0
	err := x.with(ctx, func(c *sqlite.Conn) (err error) {
		if time.Since(x.synced) > pause {
			if err := x.sync(ctx, c); err != nil {
				return err
			}
		}
		embedded, waiting, err = x.startEmbedding(c)
		return err
	})
	vector, askErr := ask()
	if err = cmp.Or(err, askErr); err != nil {
		return nil, err
	}
	if vector.packed != nil && embedded != nil && waiting <= embedBatch { // what was written just now is found, too
		wait(ctx, embedded, askTime)
	}
	var hits []memory.Hit
	err = x.with(ctx, func(c *sqlite.Conn) error {
		hits = nil
		q, err := x.ask(c, text, vector)
		if err != nil {
			return err
		}
		found, err := x.find(c, q, most)
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(found, func(f candidate) bool { return f.Score < least })
		for _, f := range x.diverse(found, most) {
			f.Snippet = x.snippet(f.text, q.parts)
			hits = append(hits, f.Hit)
		}
		return nil
	})
	return hits, err
}

// wait waits for a channel to be closed, for a time.
func wait(ctx context.Context, c <-chan struct{}, limit time.Duration) {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-c:
	case <-ctx.Done():
	case <-t.C:
	}
}

// A part is a cell of the question with what the index knows of its terms.
type part struct {
	weight float64            // of the part in the question
	values map[string]float64 // of its terms, when a chunk contains them
}

// A question is what chunks are compared with.
type question struct {
	parts  []part
	sum    float64 // of the weights of the parts
	rarest float64 // weight of a word that no note contains
	match  string  // the FTS5 query; "": no note contains any of the words
	vector []byte  // packed; nil: there is none
}

// ask looks the words of a question up.
func (x *Index) ask(c *sqlite.Conn, text string, v questionVector) (*question, error) {
	q := &question{}
	if v.packed != nil && v.model == x.embedder().Model() { // else another provider is used by now
		if err := x.useModel(c, v.model, dimension(v.packed)); err != nil {
			return nil, err
		}
		q.vector = v.packed
	}
	total, err := number(c, "SELECT count(*) FROM chunk")
	if err != nil || total == 0 {
		return q, err
	}
	rare := map[string]int64{} // the number of chunks with a term
	for _, k := range x.spell.cells(text) {
		p, err := x.weigh(c, k, total, rare)
		if err != nil {
			return nil, err
		}
		q.parts = append(q.parts, p)
		q.sum += p.weight
	}
	q.rarest, q.match = idf(0, total), matching(rare, total)
	return q, nil
}

// find returns the chunks that may answer a question, the best ones first: for each one
// that is returned, a few are compared.
func (x *Index) find(c *sqlite.Conn, q *question, most int) ([]candidate, error) {
	var all []candidate
	var err error
	if q.match != "" && (q.vector == nil || !x.o.Ranking.VectorsAlone) {
		all, err = x.read(c, q, "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", q.match, candidates)
		if err != nil {
			return nil, err
		}
		best(&all, most*x.o.Ranking.Multiplier)
	}
	if q.vector != nil {
		if all, err = x.withVectors(c, q, all, most*x.o.Ranking.Multiplier); err != nil {
			return nil, err
		}
	}
	for i := range all {
		all[i].order += all[i].close(q)
		x.age(&all[i])
	}
	best(&all, len(all))
	return all, nil
}

// best sorts candidates and keeps n.
func best(all *[]candidate, n int) {
	slices.SortFunc(*all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.order, a.order), strings.Compare(a.Path, b.Path), cmp.Compare(a.First, b.First),
			cmp.Compare(a.id, b.id))
	})
	*all = (*all)[:min(len(*all), n)]
}

// read returns the chunks whose ids a statement selects, with their scores by words.
func (x *Index) read(c *sqlite.Conn, q *question, ids string, args ...any) ([]candidate, error) {
	var all []candidate
	err := sqlitex.Execute(c,
		`SELECT chunk.id, note.path, chunk.first, chunk.last, chunk.text, chunk.terms, chunk.hash, note.time FROM
		chunk JOIN note ON note.id = chunk.note WHERE chunk.id IN (`+ids+`)`, &sqlitex.ExecOptions{
			Args: args, ResultFunc: func(s *sqlite.Stmt) error {
				f := candidate{
					Hit: memory.Hit{
						Path:      s.ColumnText(1),
						First:     s.ColumnInt(2),
						Last:      s.ColumnInt(3),
						Source:    memory.SourceOf(s.ColumnText(1)),
						Changed:   time.Unix(s.ColumnInt64(7), 0),
						Untrusted: memory.Untrusted(s.ColumnText(1)),
					},
					id:    s.ColumnInt64(0),
					text:  s.ColumnText(4),
					hash:  string(columnBytes(s, 6)),
					terms: map[string]int{},
				}
				for t := range strings.SplitSeq(s.ColumnText(5), " ") {
					f.terms[t]++
					f.count++
				}
				f.score(q)
				all = append(all, f)
				return nil
			},
		})
	return all, err
}

// withVectors adds the chunks whose vectors are most similar to that of the question, and
// gives the candidates with a vector their scores. The vector of a chunk may raise its
// score but does not lower it: who remembers the words finds the note.
func (x *Index) withVectors(c *sqlite.Conn, q *question, all []candidate, n int) ([]candidate, error) {
	r := x.o.Ranking
	byWords := len(all)
	known, value := map[int64]bool{}, map[string]float64{}
	for i := range all {
		known[all[i].id] = true
	}
	similar, err := x.nearVectors(c, q.vector, n)
	if err != nil {
		return nil, err
	}
	for _, v := range similar {
		value[v.hash] = v.similarity
		some, err := x.read(c, q, "SELECT id FROM chunk WHERE hash = ? LIMIT ?", []byte(v.hash), n)
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(some, func(f candidate) bool { return known[f.id] })...)
	}
	for i := range all {
		f := &all[i]
		v, ok := value[f.hash]
		if i < byWords && !ok {
			if v, ok, err = x.similarity(c, f.hash, q.vector); err != nil {
				return nil, err
			}
		}
		v = min(max(v, 0), 1)
		switch {
		case !ok:
		case r.VectorsAlone:
			f.Score, f.order = v, v
		default:
			f.order = (r.VectorWeight*v + r.TextWeight*f.Score) / (r.VectorWeight + r.TextWeight)
			f.Score = max(f.Score, f.order)
		}
	}
	return all, nil
}

// idf is the weight of a term that n of total chunks contain. Rare words count more than
// common ones, but not so much that a name alone decides.
func idf(n, total int64) float64 {
	return math.Sqrt(math.Log(1 + (float64(total-n)+0.5)/(float64(n)+0.5)))
}

// weigh looks the terms of a cell up.
func (x *Index) weigh(c *sqlite.Conn, k cell, total int64, rare map[string]int64) (part, error) {
	p := part{values: map[string]float64{}}
	factor := 1.0
	han := len(k.terms) > 1 || runeSize(k.terms[0]) == len(k.terms[0]) && len(k.terms[0]) > 2
	if han {
		factor = pair
	}
	if x.spell.isLight(k.terms[0]) {
		factor = light
	}
	terms := k.terms
	if len(terms) > 1 {
		terms = terms[1:] // a character without its neighbours says nothing
	}
	p.weight = factor * idf(0, total) // unless a pair, or the word, is known
	known := 0.0
	for _, t := range terms {
		n, err := docs(c, t)
		if err != nil {
			return p, err
		}
		if n > 0 {
			value := factor * idf(n, total)
			p.values[t], rare[t], known = value, n, max(known, value)
		}
	}
	if known > 0 {
		p.weight = known
	}
	add := func(term string, n int64, share float64) {
		if value := min(share*factor*idf(n, total), p.weight); n > 0 && value > p.values[term] {
			p.values[term], rare[term] = value, n
		}
	}
	for _, t := range terms {
		for _, o := range x.spell.synonyms(t) {
			n, err := docs(c, o)
			if err != nil {
				return p, err
			}
			add(o, n, 1)
		}
	}
	if han || len(k.terms[0]) < shortest {
		return p, nil
	}
	near, err := similar(c, k.terms[0])
	for t, n := range near {
		add(t, n, partly)
	}
	return p, err
}

// docs returns the number of chunks that contain a term.
func docs(c *sqlite.Conn, term string) (int64, error) {
	return number(c, "SELECT doc FROM vocabulary WHERE term = ?", term)
}

// similar returns terms that begin with a word, or the longest one that it begins with.
func similar(c *sqlite.Conn, word string) (map[string]int64, error) {
	out := map[string]int64{}
	err := sqlitex.Execute(c, "SELECT term, doc FROM vocabulary WHERE term >= ? AND term < ? LIMIT 8",
		&sqlitex.ExecOptions{
			Args: []any{word, word + "\U0010FFFF"}, ResultFunc: func(s *sqlite.Stmt) error {
				out[s.ColumnText(0)] = s.ColumnInt64(1)
				return nil
			},
		})
	for n := len(word) - 1; n >= 4 && err == nil && len(out) == 0; n-- {
		var found int64
		if found, err = docs(c, word[:n]); found > 0 {
			out[word[:n]] = found
		}
	}
	return out, err
}

func number(c *sqlite.Conn, q string, args ...any) (n int64, err error) {
	err = sqlitex.Execute(c, q, &sqlitex.ExecOptions{Args: args, ResultFunc: func(s *sqlite.Stmt) error {
		n = s.ColumnInt64(0)
		return nil
	}})
	return n, err
}

// matching returns the FTS5 query for the terms. Terms of many chunks are left out if
// there are rarer ones: they choose no chunk, and make the search slow.
func matching(docs map[string]int64, total int64) string {
	terms := make([]string, 0, len(docs))
	for t := range docs {
		terms = append(terms, t)
	}
	slices.SortFunc(terms, func(a, b string) int { return cmp.Or(cmp.Compare(docs[a], docs[b]), strings.Compare(a, b)) })
	read := int64(0)
	for i, t := range terms {
		if read += docs[t]; i > 0 && docs[t] > 20 && (read > max(total/2, 200) || i >= 40) {
			terms = terms[:i]
			break
		}
	}
	for i, t := range terms {
		terms[i] = `"` + strings.ReplaceAll(t, `"`, `""`) + `"`
	}
	return strings.Join(terms, " OR ")
}

// score compares the words of a chunk with a question. Its score is the share of the
// question that it contains. A small part of a question says little even when it is half
// of it: a chunk also needs the weight of a few rare words, or the whole question.
func (f *candidate) score(q *question) {
	if q.sum == 0 {
		return
	}
	covered := 0.0
	for _, p := range q.parts {
		best := 0.0
		for t, v := range p.values {
			if f.terms[t] > 0 {
				best = max(best, v)
			}
		}
		covered += best
	}
	share := min(covered/q.sum, 1)
	f.Score, f.order = share*min(1, covered/min(q.sum, enough*q.rarest)), share
}

// close returns more for a chunk that is mostly about the question than for one that
// mentions it.
func (f *candidate) close(q *question) float64 {
	n := 0
	for _, p := range q.parts {
		for t := range p.values {
			n += f.terms[t]
		}
	}
	return closeness * math.Min(1, 4*float64(n)/float64(f.count+20))
}

var dated = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d{4}-\d{2}-\d{2}`) })

// age puts an old daily note behind a newer one that answers as well. Other notes are of
// any time. It does not change what is found.
func (x *Index) age(f *candidate) {
	if !x.o.Ranking.Decay {
		return
	}
	day := dated().FindString(path.Base(f.Path))
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return
	}
	days := max(time.Since(t).Hours()/24, 0)
	f.order *= 1 - freshness*(1-math.Exp2(-days/x.o.Ranking.HalfLife))
}

// diverse returns the best candidates by maximal marginal relevance: what says nearly the
// same as a better one comes later.
func (x *Index) diverse(all []candidate, most int) []candidate {
	r := x.o.Ranking
	if !r.Diversity {
		return all[:min(len(all), most)]
	}
	var out []candidate
	all = all[:min(len(all), r.Multiplier*most)]
	for len(out) < most && len(all) > 0 {
		best, at := math.Inf(-1), 0
		for i := range all {
			alike := 0.0
			for j := range out {
				alike = max(alike, all[i].like(&out[j]))
			}
			if v := r.Lambda*all[i].order - (1-r.Lambda)*alike; v > best {
				best, at = v, i
			}
		}
		out = append(out, all[at])
		all = slices.Delete(slices.Clone(all), at, at+1)
	}
	return out
}

// like returns how alike the terms of two chunks are, from 0 to 1.
func (f *candidate) like(other *candidate) float64 {
	both := 0
	for t := range f.terms {
		if other.terms[t] > 0 {
			both++
		}
	}
	return float64(both) / float64(max(len(f.terms)+len(other.terms)-both, 1))
}

// snippet returns the lines of a text that contain most of the question.
func (x *Index) snippet(text string, parts []part) string {
	if len(text) <= memory.SnippetSize {
		return strings.TrimSpace(text)
	}
	lines := strings.Split(text, "\n")
	values := make([]float64, len(lines))
	for i, line := range lines {
		has := map[string]bool{}
		for _, t := range x.spell.terms(line) {
			has[t] = true
		}
		for _, p := range parts {
			best := 0.0
			for t, v := range p.values {
				if has[t] {
					best = max(best, v)
				}
			}
			values[i] += best
		}
	}
	from, to, most := 0, 1, -1.0
	for i := range lines { // the window that begins at each line
		size, sum, end := 0, 0.0, i
		for end < len(lines) && (end == i || size+len(lines[end])+1 <= memory.SnippetSize) {
			size, sum, end = size+len(lines[end])+1, sum+values[end], end+1
		}
		if sum > most {
			from, to, most = i, end, sum
		}
	}
	out := strings.TrimSpace(strings.Join(lines[from:to], "\n"))
	if len(out) > memory.SnippetSize {
		out = strings.ToValidUTF8(out[:memory.SnippetSize], "")
	}
	return out
}
