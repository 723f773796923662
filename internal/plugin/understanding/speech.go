package understanding

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/kit/backoff"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

const (
	maxResponse = 1 << 20  // bytes of a transcript with what surrounds it
	maxFailure  = 16 << 10 // bytes of an error response
)

// Speech returns a reader that transcribes recordings with a service of OpenAI's format
// (POST /audio/transcriptions).
func Speech(o dialect.Options, m llm.Model) media.Reader {
	s := &speech{o: o, model: m}
	s.redactor.Add(o.Key)
	for _, values := range o.Header {
		for _, v := range values {
			s.redactor.Add(secret.New(v))
		}
	}
	return s
}

type speech struct {
	o        dialect.Options
	model    llm.Model
	redactor secret.Redactor
}

// Read implements media.Reader.
func (s *speech) Read(ctx context.Context, in media.Input) (media.Reading, error) {
	r, err := s.read(ctx, in)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the URL may contain a password
		}
		err = fmt.Errorf("%s: %s", s.model.Ref(), s.redactor.Redact(short(err)))
	}
	return r, err
}

func (s *speech) read(ctx context.Context, in media.Input) (media.Reading, error) {
	req, err := s.request(ctx, in)
	if err != nil {
		return media.Reading{}, err
	}
	if s.o.HTTP == nil || s.o.HTTP.Transport == nil {
		return media.Reading{}, errors.New("the service has no HTTP client")
	}
	// The transport does not follow redirects, which would get the key.
	resp, err := s.o.HTTP.Transport.RoundTrip(req)
	if err != nil {
		return media.Reading{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return media.Reading{}, failure(resp, s.model)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		return media.Reading{}, err
	}
	if len(body) > maxResponse {
		return media.Reading{}, errors.New("the answer is too long")
	}
	return s.decode(resp.Header.Get("Content-Type"), body)
}

// request returns the request for a transcript.
func (s *speech) request(ctx context.Context, in media.Input) (*http.Request, error) {
	u, err := dialect.BaseURL(s.o.BaseURL, "https://api.openai.com")
	if err != nil {
		return nil, err
	}
	if u.Path == "" {
		u.Path = "/v1"
	}
	u.Path += "/audio/transcriptions"
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	file, err := form.CreateFormFile("file", "audio"+extension(in.Type))
	if err == nil {
		_, err = file.Write(in.Data)
	}
	for _, f := range [...]struct{ name, value string }{
		{"model", s.model.ID}, {"response_format", "json"}, {"language", in.Language}, {"prompt", in.Prompt},
	} {
		if f.value != "" {
			err = errors.Join(err, form.WriteField(f.name, f.value))
		}
	}
	if err = errors.Join(err, form.Close()); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), &b)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "chela")
	if !s.o.Key.IsZero() {
		req.Header.Set("Authorization", "Bearer "+s.o.Key.Reveal())
	}
	for name, values := range s.o.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	return req, nil
}

// decode returns the transcript in an answer.
func (s *speech) decode(contentType string, body []byte) (media.Reading, error) {
	r := media.Reading{Model: s.model}
	if kind, _, _ := mime.ParseMediaType(contentType); kind == "text/plain" &&
		!bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		r.Text = string(body)
		return r, nil
	}
	var answer struct {
		Text  *string `json:"text"`
		Usage struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Text == nil {
		return media.Reading{}, errors.New("the answer is no transcript: is the base URL right?")
	}
	r.Text, r.Usage = *answer.Text, llm.Usage{Input: answer.Usage.Input, Output: answer.Usage.Output}
	return r, nil
}

// failure returns the error of a response.
func failure(resp *http.Response, m llm.Model) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxFailure))
	kind, message := dialect.ParseError(data)
	return &llm.Error{
		Class: llm.Classify(resp.StatusCode, kind, message), Provider: m.Provider, Model: m.ID, Status: resp.StatusCode,
		Message: message, RetryAfter: backoff.RetryAfter(resp.Header, time.Now()),
	}
}

// extension returns the ending of a file name for a type, by which services recognize
// the format.
func extension(kind string) string {
	kind, _, _ = strings.Cut(kind, ";")
	switch kind {
	case "audio/ogg", "audio/opus":
		return ".ogg"
	case "audio/mpeg", "audio/mp3":
		return ".mp3"
	case "audio/mp4", "audio/x-m4a", "audio/m4a":
		return ".m4a"
	case "audio/wav", "audio/x-wav", "audio/wave":
		return ".wav"
	case "audio/webm", "video/webm":
		return ".webm"
	case "audio/flac", "audio/x-flac":
		return ".flac"
	case "video/mp4":
		return ".mp4"
	case "image/png", "image/jpeg", "image/gif", "image/webp", "audio/aac", "audio/amr":
		_, name, _ := strings.Cut(kind, "/")
		return "." + name
	}
	return ".bin"
}
