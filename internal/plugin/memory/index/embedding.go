package index

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/memory"
)

// Vectors is where the vectors of chunks come from. The zero value is none: notes are
// found by their words alone.
type Vectors struct {
	// Embedders make the vectors. The first one is used, and the next one when it fails:
	// then all vectors are made again. Their models differ.
	Embedders []memory.Embedder
	// Required is set if a search without vectors is an error.
	Required bool
	// Unused is the number of vectors that are kept when their texts are not in the notes
	// any more: a note may be moved, or an edit may be undone.
	Unused int
}

// Limits of embedding.
const (
	embedBatch = 32               // chunks that are embedded at once
	askTime    = 2 * time.Second  // for the vector of a question
	askLong    = 15 * time.Second // likewise when it is required: a local server may load its model first
	embedTime  = 2 * time.Minute  // for the vectors of a batch
	coolDown   = 30 * time.Second // in which a provider that failed is not asked again
	nearest    = 400              // vectors with the most similar signs, whose cosines are computed
)

// embedding is the state of the vectors of an index.
type embedding struct {
	cancel context.CancelFunc
	ctx    context.Context // ends when the index is closed

	mu      sync.Mutex
	current int           // embedder in use
	problem string        // of the last request; "": there was none
	after   time.Time     // when a provider that failed is asked again
	running chan struct{} // closed when the chunks that wait are embedded; nil: none are
	waiting int           // chunks without a vector, or a few more than there are
	counted bool          // waiting is known
	workers sync.WaitGroup
}

// wait adds to the number of chunks without a vector.
func (x *Index) wait(n int) {
	x.e.mu.Lock()
	defer x.e.mu.Unlock()
	x.e.waiting += n
}

// embedder returns the embedder in use; nil: there is none.
func (x *Index) embedder() memory.Embedder {
	x.e.mu.Lock()
	defer x.e.mu.Unlock()
	if len(x.o.Vectors.Embedders) == 0 {
		return nil
	}
	return x.o.Vectors.Embedders[x.e.current]
}

// failed records that an embedder failed. It reports whether another one is used from
// now on.
func (x *Index) failed(e memory.Embedder, err error) bool {
	x.e.mu.Lock()
	defer x.e.mu.Unlock()
	all := x.o.Vectors.Embedders
	if e.Model() != all[x.e.current].Model() { // it is replaced already
		return true
	}
	if x.e.problem != err.Error() {
		x.o.Log.Warn("the vectors of notes", "err", err)
	}
	x.e.problem = err.Error()
	if x.e.current+1 < len(all) {
		x.e.current++
		x.e.counted = false
		x.o.Log.Warn("the vectors of notes are made by another provider", "model", all[x.e.current].Model())
		return true
	}
	x.e.after = time.Now().Add(coolDown)
	return false
}

// succeeded records that an embedder answered.
func (x *Index) succeeded(e memory.Embedder) {
	x.e.mu.Lock()
	defer x.e.mu.Unlock()
	if e.Model() == x.o.Vectors.Embedders[x.e.current].Model() {
		x.e.problem, x.e.after = "", time.Time{}
	}
}

// resting returns the problem of a provider that is not asked now; "": it is asked.
func (x *Index) resting() string {
	x.e.mu.Lock()
	defer x.e.mu.Unlock()
	if time.Now().Before(x.e.after) {
		return x.e.problem
	}
	return ""
}

// questionVector is the vector of a question.
type questionVector struct {
	model  string
	packed []byte // nil: there is none, and the search is by words
}

// askVector begins to embed a question. The function that it returns waits for the
// vector.
func (x *Index) askVector(ctx context.Context, question string) func() (questionVector, error) {
	none := func() (questionVector, error) { return questionVector{}, nil }
	if x.embedder() == nil {
		return none
	}
	limit := askTime
	if x.o.Vectors.Required {
		limit = askLong
	} else if x.resting() != "" {
		return none
	}
	var out questionVector
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		out, err = x.embedQuestion(ctx, limit, question)
	}()
	return func() (questionVector, error) {
		<-done
		return out, err
	}
}

// embedQuestion returns the vector of a question. Without one, the search is by words,
// or the error is [memory.ErrUnavailable] if vectors are required.
func (x *Index) embedQuestion(ctx context.Context, limit time.Duration, question string) (questionVector, error) {
	var none questionVector
	for {
		e := x.embedder()
		inner, cancel := context.WithTimeout(ctx, limit)
		vectors, err := e.Embed(inner, memory.Question, []string{question})
		if err != nil && ctx.Err() == nil && inner.Err() != nil {
			err = fmt.Errorf("%s: no answer within %v", e.Model(), limit)
		}
		cancel()
		switch {
		case ctx.Err() != nil:
			return none, ctx.Err()
		case err == nil:
			x.succeeded(e)
			return questionVector{e.Model(), pack(vectors[0])}, nil
		case x.failed(e, err):
		case x.o.Vectors.Required:
			return none, fmt.Errorf("%w: %w", memory.ErrUnavailable, err)
		default:
			return none, nil
		}
	}
}

// textOf returns the text of a chunk that is embedded.
func textOf(head, text string) string {
	if head == "" {
		return text
	}
	return head + "\n\n" + text
}

// hashOf identifies the text of a chunk that is embedded.
func hashOf(k chunk) []byte {
	h := sha256.Sum256([]byte(textOf(k.head, k.text)))
	return h[:16]
}

// useModel prepares the file for the vectors of a model. Those of another model, or of
// another length, are deleted. dimension 0 is not known yet.
func (x *Index) useModel(c *sqlite.Conn, name string, dimension int) error {
	var was string
	var length int
	err := sqlitex.Execute(c, "SELECT name, dimension FROM model",
		&sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
			was, length = s.ColumnText(0), s.ColumnInt(1)
			return nil
		}})
	if err != nil || was == name && (dimension == 0 || dimension == length) {
		return err
	}
	if length > 0 {
		x.o.Log.Info("the vectors of notes are made again", "model", name)
	}
	if was != name || length > 0 {
		x.e.mu.Lock()
		x.e.counted = false
		x.e.mu.Unlock()
	}
	return x.change(c, func() error {
		for _, q := range []string{"DELETE FROM model", "DELETE FROM vector", "DELETE FROM sign"} {
			if err := sqlitex.Execute(c, q, nil); err != nil {
				return err
			}
		}
		return sqlitex.Execute(c, "INSERT INTO model(name, dimension) VALUES (?, ?)",
			&sqlitex.ExecOptions{Args: []any{name, dimension}})
	})
}

// missing is a chunk without a vector.
type missing struct {
	id   int64
	hash []byte
	text string
}

// count counts the chunks without a vector, if that is not known.
func (x *Index) count(c *sqlite.Conn) (int, error) {
	x.e.mu.Lock()
	known, n := x.e.counted, x.e.waiting
	x.e.mu.Unlock()
	if known {
		return n, nil
	}
	all, err := number(c, "SELECT count(DISTINCT hash) FROM chunk WHERE hash NOT IN (SELECT hash FROM vector)")
	if err != nil {
		return 0, err
	}
	x.e.mu.Lock()
	defer x.e.mu.Unlock()
	x.e.waiting, x.e.counted = int(all), true
	return x.e.waiting, nil
}

// startEmbedding begins to embed the chunks without a vector, unless that is going on or
// the provider rests. The channel is closed at the end; nil: nothing is embedded.
func (x *Index) startEmbedding(c *sqlite.Conn) (<-chan struct{}, int, error) {
	e := x.embedder()
	if e == nil {
		return nil, 0, nil
	}
	if err := x.useModel(c, e.Model(), 0); err != nil {
		return nil, 0, err
	}
	n, err := x.count(c)
	if err != nil {
		return nil, 0, err
	}
	x.e.mu.Lock()
	defer x.e.mu.Unlock()
	if x.e.running == nil {
		if n == 0 || time.Now().Before(x.e.after) || x.e.ctx.Err() != nil {
			return nil, n, nil
		}
		done := make(chan struct{})
		x.e.running = done
		x.e.workers.Go(func() {
			defer close(done)
			x.embed(x.e.ctx)
			x.e.mu.Lock()
			defer x.e.mu.Unlock()
			if x.e.running == done {
				x.e.running = nil
			}
		})
	}
	return x.e.running, n, nil
}

// errIndex reports an error of the file, which is not one of the provider.
var errIndex = errors.New("memory index")

// unwritten records that the file could not be read or written. The chunks wait for a
// while.
func (x *Index) unwritten(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	x.o.Log.Warn("the vectors of notes are not stored", "err", err)
	x.e.mu.Lock()
	defer x.e.mu.Unlock()
	x.e.after = time.Now().Add(coolDown)
}

// errChanging reports a provider whose vectors do not have one length.
var errChanging = errors.New("its vectors have different lengths from one request to the next")

// embed embeds the chunks without a vector, until there are none or the provider fails.
func (x *Index) embed(ctx context.Context) {
	after, changes := int64(0), 0
	for {
		e := x.embedder()
		var some []missing
		err := x.with(ctx, func(c *sqlite.Conn) (err error) {
			if err = x.useModel(c, e.Model(), 0); err == nil {
				some, err = missingAfter(c, after)
			}
			if err == nil && len(some) == 0 && after == 0 {
				x.e.mu.Lock()
				defer x.e.mu.Unlock()
				x.e.waiting, x.e.counted, x.e.running = 0, true, nil
			}
			return err
		})
		switch {
		case err != nil:
			x.unwritten(ctx, err)
			return
		case len(some) == 0 && after == 0:
			return
		case len(some) == 0:
			after = 0
			continue
		}
		again, err := x.embedSome(ctx, e, some)
		if again && err == nil {
			after, changes = 0, changes+1
			if changes > 2 {
				err = fmt.Errorf("%s: %w", e.Model(), errChanging)
			}
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			x.succeeded(e)
			if !again {
				after = some[len(some)-1].id
			}
		case errors.Is(err, errIndex):
			x.unwritten(ctx, err)
			return
		case x.failed(e, err):
			after, changes = 0, 0
		default:
			return
		}
	}
}

// missingAfter returns the next chunks without a vector, after that with an id.
func missingAfter(c *sqlite.Conn, id int64) ([]missing, error) {
	var out []missing
	err := sqlitex.Execute(c, `SELECT id, hash, head, text FROM chunk
		WHERE id > ? AND NOT EXISTS (SELECT 1 FROM vector WHERE vector.hash = chunk.hash) ORDER BY id LIMIT ?`,
		&sqlitex.ExecOptions{
			Args: []any{id, embedBatch}, ResultFunc: func(s *sqlite.Stmt) error {
				m := missing{s.ColumnInt64(0), columnBytes(s, 1), textOf(s.ColumnText(2), s.ColumnText(3))}
				out = append(out, m)
				return nil
			},
		})
	return out, err
}

func columnBytes(s *sqlite.Stmt, col int) []byte {
	b := make([]byte, s.ColumnLen(col))
	s.ColumnBytes(col, b)
	return b
}

// embedSome embeds chunks and stores their vectors. It reports whether those of other
// chunks were deleted because these have another length.
func (x *Index) embedSome(ctx context.Context, e memory.Embedder, some []missing) (again bool, err error) {
	texts := make([]string, len(some))
	for i, m := range some {
		texts[i] = m.text
	}
	vectors, err := embedTexts(ctx, e, texts)
	if refused(err) && len(texts) > 1 {
		vectors, err = x.embedEach(ctx, e, texts)
	}
	if err != nil {
		return false, err
	}
	err = x.with(ctx, func(c *sqlite.Conn) error {
		if e.Model() != x.embedder().Model() {
			return nil // another provider is used now
		}
		was, err := number(c, "SELECT dimension FROM model")
		if err != nil {
			return err
		}
		again = was != 0 && int(was) != length(vectors)
		if err := x.useModel(c, e.Model(), length(vectors)); err != nil {
			return err
		}
		return x.change(c, func() error {
			for i, v := range vectors {
				if err := putVector(c, some[i].hash, v); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		err = fmt.Errorf("%w: %w", errIndex, err)
	}
	return again, err
}

// embedTexts embeds texts of notes within a time.
func embedTexts(ctx context.Context, e memory.Embedder, texts []string) ([][]float32, error) {
	inner, cancel := context.WithTimeout(ctx, embedTime)
	defer cancel()
	vectors, err := e.Embed(inner, memory.Document, texts)
	if err != nil && inner.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s: no answer within %v", e.Model(), embedTime)
	}
	return vectors, err
}

// refused reports whether an error may be about one of the texts, for example because it
// has more tokens than the model takes.
func refused(err error) bool {
	class := llm.ClassOf(err)
	return class == llm.ClassFormat || class == llm.ClassContext
}

// embedEach embeds texts one by one, because the provider refused them together. The
// vector of a text that it refuses, too, is nil. If it accepts none, the error is about
// something else.
func (x *Index) embedEach(ctx context.Context, e memory.Embedder, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	var refusal error
	accepted := 0
	for i, t := range texts {
		one, err := embedTexts(ctx, e, []string{t})
		switch {
		case err == nil && accepted > 0 && len(one[0]) != length(vectors):
			return nil, fmt.Errorf("%s: %w", e.Model(), errChanging)
		case err == nil:
			vectors[i] = one[0]
			accepted++
		case refused(err):
			refusal = err
		default:
			return nil, err
		}
	}
	switch {
	case accepted == 0:
		return nil, refusal
	case refusal != nil:
		x.o.Log.Warn("parts of notes get no vectors and are found by their words only",
			"parts", len(texts)-accepted, "err", refusal)
	}
	return vectors, nil
}

// length returns the length of the vectors that are not nil.
func length(vectors [][]float32) int {
	most := 0
	for _, v := range vectors {
		most = max(most, len(v))
	}
	return most
}

// putVector stores a vector; nil: the text gets none.
func putVector(c *sqlite.Conn, hash []byte, vector []float32) error {
	packed := []byte{}
	if vector != nil {
		packed = pack(vector)
	}
	used, err := number(c, "SELECT EXISTS(SELECT 1 FROM chunk WHERE hash = ?)", hash)
	if err != nil {
		return err
	}
	unused := int64(0)
	if used == 0 { // the note was changed meanwhile
		unused = time.Now().Unix()
	}
	err = sqlitex.Execute(c, "INSERT INTO vector(hash, unused, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
		&sqlitex.ExecOptions{Args: []any{hash, unused, packed}})
	if err != nil || unused != 0 || c.Changes() == 0 || vector == nil {
		return err
	}
	return sqlitex.Execute(c, "INSERT INTO sign(id, bits) VALUES (?, ?)",
		&sqlitex.ExecOptions{Args: []any{c.LastInsertRowID(), signs(packed)}})
}

// useVector marks the vector of a new chunk as used. It reports whether there is one.
func useVector(c *sqlite.Conn, hash []byte) (found bool, err error) {
	var id, unused int64
	var data []byte
	err = sqlitex.Execute(c, "SELECT id, unused, data FROM vector WHERE hash = ?",
		&sqlitex.ExecOptions{Args: []any{hash}, ResultFunc: func(s *sqlite.Stmt) error {
			found, id, unused, data = true, s.ColumnInt64(0), s.ColumnInt64(1), columnBytes(s, 2)
			return nil
		}})
	if err != nil || unused == 0 {
		return found, err
	}
	if err := sqlitex.Execute(c, "UPDATE vector SET unused = 0 WHERE id = ?",
		&sqlitex.ExecOptions{Args: []any{id}}); err != nil || len(data) == 0 {
		return true, err
	}
	return true, sqlitex.Execute(c, "INSERT INTO sign(id, bits) VALUES (?, ?)",
		&sqlitex.ExecOptions{Args: []any{id, signs(data)}})
}

// unuseVectors marks the vectors of a note that is forgotten as unused, except those of
// texts that occur in other notes.
func unuseVectors(c *sqlite.Conn, note int64) error {
	const of = `SELECT vector.id FROM chunk JOIN vector ON vector.hash = chunk.hash WHERE chunk.note = ?1
		AND NOT EXISTS (SELECT 1 FROM chunk AS other WHERE other.hash = chunk.hash AND other.note <> ?1)`
	if err := sqlitex.Execute(c, "DELETE FROM sign WHERE id IN ("+of+")", &sqlitex.ExecOptions{Args: []any{note}}); err !=
		nil {
		return err
	}
	return sqlitex.Execute(c, "UPDATE vector SET unused = ?2 WHERE id IN ("+of+")",
		&sqlitex.ExecOptions{Args: []any{note, time.Now().Unix()}})
}

// pruneVectors deletes the oldest unused vectors until most remain.
func pruneVectors(c *sqlite.Conn, most int) error {
	return sqlitex.Execute(c, "DELETE FROM vector WHERE id IN (SELECT id FROM vector WHERE unused > 0 ORDER BY unused DESC, id DESC LIMIT -1 OFFSET ?)",
		&sqlitex.ExecOptions{Args: []any{max(most, 0)}})
}

// near is a vector and how similar it is.
type near struct {
	id         int64
	hash       string
	similarity float64
}

// nearVectors returns the n vectors that are most similar to that of a question.
func (x *Index) nearVectors(c *sqlite.Conn, question []byte, n int) ([]near, error) {
	type other struct {
		id   int64
		bits int // that are different
	}
	var some []other
	limit := nearest + n
	want := signs(question)
	have := make([]byte, len(want))
	fewest := func() {
		slices.SortFunc(some, func(a, b other) int { return cmp.Or(cmp.Compare(a.bits, b.bits), cmp.Compare(a.id, b.id)) })
		some = some[:min(len(some), limit)]
	}
	most := len(want) * 8
	err := sqlitex.Execute(c, "SELECT id, bits FROM sign", &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
		s.ColumnBytes(1, have)
		d := different(want, have)
		if d > most {
			return nil
		}
		if some = append(some, other{s.ColumnInt64(0), d}); len(some) == 4*limit {
			fewest()
			most = some[len(some)-1].bits
		}
		return nil
	}})
	if err != nil {
		return nil, err
	}
	fewest()
	out := make([]near, 0, len(some))
	for _, o := range some {
		err := sqlitex.Execute(c, "SELECT hash, data FROM vector WHERE id = ?",
			&sqlitex.ExecOptions{Args: []any{o.id}, ResultFunc: func(s *sqlite.Stmt) error {
				out = append(out, near{o.id, string(columnBytes(s, 0)), cosine(question, columnBytes(s, 1))})
				return nil
			}})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out,
		func(a, b near) int { return cmp.Or(cmp.Compare(b.similarity, a.similarity), cmp.Compare(a.id, b.id)) })
	return out[:min(len(out), n)], nil
}

// similarity returns how similar the vector of a text is to that of a question, and
// whether the text has one.
func (x *Index) similarity(c *sqlite.Conn, hash string, question []byte) (value float64, ok bool, err error) {
	err = sqlitex.Execute(c, "SELECT data FROM vector WHERE hash = ? AND data <> x''",
		&sqlitex.ExecOptions{Args: []any{[]byte(hash)}, ResultFunc: func(s *sqlite.Stmt) error {
			value, ok = cosine(question, columnBytes(s, 0)), true
			return nil
		}})
	return value, ok, err
}

// vectorStatus returns the state of the vectors; nil: there are none.
func (x *Index) vectorStatus(c *sqlite.Conn) (*memory.Vectors, error) {
	e := x.embedder()
	if e == nil {
		return nil, nil
	}
	if _, _, err := x.startEmbedding(c); err != nil {
		return nil, err
	}
	v := &memory.Vectors{Model: e.Model()}
	length, err := number(c, "SELECT dimension FROM model")
	if err != nil {
		return nil, err
	}
	all, err := number(c, "SELECT count(*) FROM chunk")
	if err != nil {
		return nil, err
	}
	done, err := number(c, "SELECT count(*) FROM chunk WHERE hash IN (SELECT hash FROM vector)")
	if err != nil {
		return nil, err
	}
	refused, err := number(c, "SELECT count(*) FROM chunk WHERE hash IN (SELECT hash FROM vector WHERE data = x'')")
	v.Dimension, v.Ready, v.Waiting = int(length), int(done-refused), int(all-done)
	x.e.mu.Lock()
	defer x.e.mu.Unlock()
	v.Problem = x.e.problem
	return v, err
}
