package pdf

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/ascii85"
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"sync"
)

const (
	maxObjects  = 200_000
	maxTrailers = 16
	maxStream   = 8 << 20  // bytes of one stream, inflated
	maxTotal    = 64 << 20 // bytes of all streams and tables together
)

// ErrEncrypted is returned for a file that needs a password or a key.
var ErrEncrypted = errors.New("the PDF is encrypted")

// object is a value with its stream. The stream may be nil.
type object struct {
	value any
	raw   []byte
}

// location is the position of an object.
type location struct {
	data []byte
	at   int
}

// file is a PDF.
type file struct {
	ctx       context.Context
	locations map[int]location
	cache     map[int]object
	root      any // root of the document, as given by the trailers
	data      []byte
	ends      []int // positions of the ends of streams in data
	left      int   // remaining bytes for streams and tables
	depth     int   // nesting depth of objects being read

	glyphs  map[string]string // text of glyphs by name
	accents map[string]string
}

var objectHead = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(\d{1,7})[ \t\r\n\f\x00]+\d{1,5}[ \t\r\n\f\x00]+obj`)
})

// open finds the objects of a file.
func open(ctx context.Context, data []byte) (*file, error) {
	f := &file{
		ctx:       ctx,
		data:      data,
		ends:      positions(data, "endstream"),
		locations: map[int]location{},
		cache:     map[int]object{},
		left:      maxTotal,
		glyphs:    glyphNames(),
		accents:   accents(),
	}
	for _, m := range objectHead().FindAllSubmatchIndex(data, maxObjects) {
		n, err := strconv.Atoi(string(data[m[2]:m[3]]))
		if err == nil {
			f.locations[n] = location{data, m[1]}
		}
	}
	trailers := positions(data, "trailer")
	for _, at := range trailers[max(0, len(trailers)-maxTrailers):] {
		p := parser{data, at + len("trailer")}
		if v, ok := p.next(true); ok {
			if err := f.trailer(v); err != nil {
				return nil, err
			}
		}
	}
	return f, f.unpack()
}

// positions returns the positions of a word in data.
func positions(data []byte, word string) []int {
	var out []int
	for at := 0; len(out) < maxObjects; {
		i := bytes.Index(data[at:], []byte(word))
		if i < 0 {
			break
		}
		out = append(out, at+i)
		at += i + len(word)
	}
	return out
}

// trailer reads a trailer, or a stream in its place.
func (f *file) trailer(v any) error {
	d, ok := v.(dict)
	if !ok {
		return nil
	}
	if d["Encrypt"] != nil {
		return ErrEncrypted
	}
	if root, ok := d["Root"].(ref); ok {
		f.root = root
	}
	return nil
}

// unpack finds the objects in object streams, and the trailers that are
// streams.
func (f *file) unpack() error {
	for _, n := range slices.Sorted(maps.Keys(f.locations)) {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		o := f.object(n)
		d, ok := o.value.(dict)
		if !ok || o.raw == nil {
			continue
		}
		switch d["Type"] {
		case name("XRef"):
			if err := f.trailer(d); err != nil {
				return err
			}
		case name("ObjStm"):
			f.members(o)
		}
	}
	return nil
}

// members records the objects in an object stream.
func (f *file) members(o object) {
	d := o.value.(dict)
	count, _ := f.resolve(d["N"]).(float64)
	first, _ := f.resolve(d["First"]).(float64)
	data := f.decode(o)
	p := parser{data: data}
	for i := 0; i < int(count) && len(f.locations) < maxObjects; i++ {
		n, ok1 := p.word(false).(float64)
		p.skip()
		at, ok2 := p.word(false).(float64)
		p.skip()
		if !ok1 || !ok2 || at < 0 || first < 0 || int(first+at) >= len(data) {
			return
		}
		if _, known := f.locations[int(n)]; !known {
			f.locations[int(n)] = location{data, int(first + at)}
		}
	}
}

// object returns an object, or the zero value if there is none.
func (f *file) object(n int) object {
	if o, ok := f.cache[n]; ok {
		return o
	}
	where, ok := f.locations[n]
	if !ok || f.depth > maxDepth || f.left <= 0 {
		return object{}
	}
	f.depth++
	defer func() { f.depth-- }()
	f.cache[n] = object{} // ends recursion of self-references
	p := parser(where)
	v, _ := p.next(true)
	f.left -= p.at - where.at // objects may overlap
	o := object{value: v}
	if d, ok := v.(dict); ok {
		p.skip()
		if p.isFile(f) && bytes.HasPrefix(p.data[p.at:], []byte("stream")) {
			o.raw = f.stream(p.at+len("stream"), d)
		}
	}
	f.cache[n] = o
	return o
}

// isFile reports whether p reads the file itself and not one of its streams.
func (p *parser) isFile(f *file) bool { return len(p.data) > 0 && &p.data[0] == &f.data[0] }

// stream returns the bytes of the stream that begins at a position.
func (f *file) stream(at int, d dict) []byte {
	if at < len(f.data) && f.data[at] == '\r' {
		at++
	}
	if at < len(f.data) && f.data[at] == '\n' {
		at++
	}
	data := f.data[at:]
	if n, ok := f.resolve(d["Length"]).(float64); ok && n >= 0 && int(n) <= len(data) {
		after := bytes.TrimLeft(data[int(n):min(int(n)+20, len(data))], "\r\n \t")
		if bytes.HasPrefix(after, []byte("endstream")) {
			return data[:int(n):int(n)]
		}
	}
	i, _ := slices.BinarySearch(f.ends, at)
	if i == len(f.ends) {
		return nil
	}
	return f.data[at:f.ends[i]:f.ends[i]]
}

// resolve follows a reference.
func (f *file) resolve(v any) any {
	for range 16 {
		r, ok := v.(ref)
		if !ok {
			return v
		}
		v = f.object(int(r)).value
	}
	return nil
}

func (f *file) dict(v any) dict {
	d, _ := f.resolve(v).(dict)
	return d
}

// list returns an array. Any other value is returned as an array of one
// element.
func (f *file) list(v any) array {
	switch v := f.resolve(v).(type) {
	case nil:
		return nil
	case array:
		return v
	default:
		return array{v}
	}
}

// decode returns the content of a stream, as far as it can be decoded.
func (f *file) decode(o object) []byte {
	d, _ := o.value.(dict)
	data := o.raw
	params := f.list(d["DecodeParms"])
	for i, filter := range f.list(d["Filter"]) {
		switch f.resolve(filter) {
		case name("FlateDecode"), name("Fl"):
			data = f.inflate(data)
			if i < len(params) {
				data = f.predict(data, f.dict(params[i]))
			}
		case name("ASCII85Decode"), name("A85"):
			data, _, _ = bytes.Cut(data, []byte("~>"))
			data = f.bounded(ascii85.NewDecoder(bytes.NewReader(data)))
		case name("ASCIIHexDecode"), name("AHx"):
			p := parser{data: data}
			data = []byte(p.hex())
		default:
			return nil // usually an image
		}
	}
	return data
}

func (f *file) inflate(data []byte) []byte {
	z, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	return f.bounded(z)
}

// bounded reads up to the limits. The readable beginning of a broken stream
// is returned.
func (f *file) bounded(r io.Reader) []byte {
	out, _ := io.ReadAll(io.LimitReader(r, int64(min(maxStream, f.left))))
	f.left -= len(out)
	return out
}

// predict reverses a PNG predictor, which object streams may use.
func (f *file) predict(data []byte, d dict) []byte {
	kind, _ := f.resolve(d["Predictor"]).(float64)
	columns, _ := f.resolve(d["Columns"]).(float64)
	if kind < 10 || columns < 1 || columns > 1<<16 {
		return data
	}
	width := int(columns)
	up := make([]byte, width)
	var out []byte
	for len(data) > 1 {
		method, row := data[0], bytes.Clone(data[1:min(1+width, len(data))])
		data = data[1+len(row):]
		for i := range row {
			var a, c byte
			if i > 0 {
				a, c = row[i-1], up[i-1]
			}
			switch method {
			case 1:
				row[i] += a
			case 2:
				row[i] += up[i]
			case 3:
				row[i] += byte((int(a) + int(up[i])) / 2)
			case 4:
				row[i] += paeth(a, up[i], c)
			}
		}
		out = append(out, row...)
		copy(up, row)
	}
	return out
}

func paeth(a, b, c byte) byte {
	p := int(a) + int(b) - int(c)
	pa, pb, pc := abs(p-int(a)), abs(p-int(b)), abs(p-int(c))
	switch {
	case pa <= pb && pa <= pc:
		return a
	case pb <= pc:
		return b
	}
	return c
}

func abs(n int) int { return max(n, -n) }
