package media

import (
	"bytes"
	"context"
	"net/http"
	"path"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
)

// Kind is a kind of attachments that are understood in the same way.
type Kind string

// The kinds.
const (
	Picture  Kind = "image"
	Audio    Kind = "audio"
	Video    Kind = "video"
	Document Kind = "document" // a file whose text can be read
	Other    Kind = ""         // any other file
)

// KindOf returns the kind of an attachment, by its type.
func KindOf(m chela.Media) Kind {
	kind, _, _ := strings.Cut(strings.ToLower(m.Type), ";")
	switch class, _, _ := strings.Cut(kind, "/"); {
	case class == "image" && kind != "image/svg+xml":
		return Picture
	case class == "audio":
		return Audio
	case class == "video":
		return Video
	case class == "text", IsDocument(kind):
		return Document
	}
	return Other
}

// Docx is the type of word processor documents in Office Open XML.
const Docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

// IsDocument reports whether a type outside text/ is that of a document whose text can
// be read.
func IsDocument(kind string) bool {
	switch kind {
	case "application/pdf", "application/json", "application/xml", "application/xhtml+xml", "application/yaml",
		"application/x-yaml", "application/toml",
		"application/sql", "application/javascript", "application/x-sh", "application/x-ndjson", "image/svg+xml", Docx:
		return true
	}
	return strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml")
}

// Input is an attachment to be read by a [Reader].
type Input struct {
	Kind       Kind
	Type, Name string
	Data       []byte
	Prompt     string // what to do with it; "": the reader's default
	Language   string // of the speech, such as "de"; "": unknown
	MaxChars   int    // of the text; 0: no limit
}

// Reading is what a Reader read.
type Reading struct {
	Text  string
	Model llm.Model // that read it; the zero Model: none
	Usage llm.Usage // of Model
}

// Reader reads an attachment: it transcribes or describes it.
type Reader interface {
	Read(context.Context, Input) (Reading, error)
}

// ReaderFunc is a function as a Reader.
type ReaderFunc func(context.Context, Input) (Reading, error)

// Read implements Reader.
func (f ReaderFunc) Read(ctx context.Context, in Input) (Reading, error) { return f(ctx, in) }

// types are the types of files by the extension of their name.
var types = map[string]string{
	".ogg":  "audio/ogg",
	".oga":  "audio/ogg",
	".opus": "audio/ogg",
	".mp3":  "audio/mpeg",
	".m4a":  "audio/mp4",
	".aac":  "audio/aac",
	".wav":  "audio/wav",
	".flac": "audio/flac",
	".amr":  "audio/amr",
	".weba": "audio/webm",
	".caf":  "audio/x-caf",
	".mp4":  "video/mp4",
	".m4v":  "video/mp4",
	".mov":  "video/quicktime",
	".webm": "video/webm",

	".mkv":  "video/x-matroska",
	".avi":  "video/avi",
	".pdf":  "application/pdf",
	".docx": Docx,
	".html": "text/html",
	".htm":  "text/html",
	".csv":  "text/csv",

	".md":   "text/markdown",
	".json": "application/json",
	".xml":  "application/xml",
	".yaml": "application/yaml",
	".yml":  "application/yaml",
	".toml": "application/toml",

	".heic": "image/heic",
	".heif": "image/heic",
}

// byName returns the type that the extension of a file name stands for; "": unknown.
func byName(name string) string { return types[strings.ToLower(path.Ext(name))] }

// sniff returns the type of content; "": it is not conclusive.
func sniff(data []byte) string {
	brand := ""
	if len(data) >= 12 && string(data[4:8]) == "ftyp" {
		brand = string(data[8:12])
	}
	switch {
	case strings.HasPrefix(brand, "M4A"), strings.HasPrefix(brand, "M4B"):
		return "audio/mp4"
	case strings.HasPrefix(brand, "qt"):
		return "video/quicktime"
	case brand == "heic", brand == "heix", brand == "hevc", brand == "mif1", brand == "msf1":
		return "image/heic"
	case brand != "":
		return "video/mp4"
	case bytes.HasPrefix(data, []byte("fLaC")):
		return "audio/flac"
	case bytes.HasPrefix(data, []byte("#!AMR")):
		return "audio/amr"
	case len(data) > 1 && data[0] == 0xff && data[1]&0xf6 == 0xf0:
		return "audio/aac"
	case len(data) > 1 && data[0] == 0xff && data[1]&0xe6 == 0xe2 && data[1] != 0xff:
		return "audio/mpeg"
	}
	switch kind, _, _ := strings.Cut(http.DetectContentType(data), ";"); kind {
	case "application/octet-stream", "text/plain", "application/zip":
		return ""
	case "application/ogg":
		return "audio/ogg"
	case "audio/wave":
		return "audio/wav"
	default:
		return kind
	}
}

// containers are the types of files that contain sound, pictures or both, with the type
// of those that contain only sound.
var containers = map[string]string{"video/mp4": "audio/mp4", "video/webm": "audio/webm", "audio/ogg": "video/ogg"}

// typeOf returns the type of content that is no image: by the content, else by the
// extension of its name, else as it is claimed.
func typeOf(data []byte, name, claimed string) string {
	claimed, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(claimed)), ";")
	found := sniff(data)
	if other := containers[found]; other != "" && (claimed == other || byName(name) == other) {
		return other
	}
	plain, _, _ := strings.Cut(http.DetectContentType(data), ";")
	switch {
	case found != "":
		return found
	case byName(name) != "" && IsTextual(byName(name)) == (plain == "text/plain"):
		return byName(name)
	case claimed != "" && !strings.HasPrefix(claimed, "image/"):
		return claimed
	}
	return plain
}

// IsTextual reports whether content of a type is text in some encoding.
func IsTextual(kind string) bool {
	return strings.HasPrefix(kind, "text/") || IsDocument(kind) && kind != "application/pdf" && kind != Docx
}
