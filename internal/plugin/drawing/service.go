package drawing

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/drawing"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// Limits of answers in bytes.
const (
	maxFailure = 16 << 10
	maxAnswer  = drawing.MaxCount*drawing.MaxPicture/3*4 + 1<<20
)

// service is a service that is asked over HTTP.
type service struct {
	dialect.Options
	model    string
	redactor *secret.Redactor
}

func newService(o dialect.Options, model string) *service {
	s := &service{o, model, new(secret.Redactor)}
	s.redactor.Add(o.Key)
	return s
}

// openAI asks a service of OpenAI's format: POST /images/generations, or /images/edits if the
// request starts from pictures.
func (s *service) openAI(ctx context.Context, r drawing.Request) (res drawing.Result, used llm.Usage, err error) {
	u, err := dialect.BaseURL(s.BaseURL, "https://api.openai.com")
	if err != nil {
		return res, used, err
	}
	if u.Path == "" {
		u.Path = "/v1"
	}
	size := r.Size
	if size == "" {
		size = drawing.SizeOf(r.Aspect)
	}
	fields := map[string]any{"model": s.model, "prompt": r.Prompt, "n": max(r.Count, 1)}
	own := strings.HasPrefix(s.model, "gpt-image") || strings.HasPrefix(s.model, "chatgpt-image")
	if !own { // OpenAI's own models refuse it, and others answer with a link without it
		fields["response_format"] = "b64_json"
	}
	for name, value := range map[string]string{
		"size":          size,
		"quality":       r.Quality,
		"output_format": r.Format,
		"background":    r.Background,
	} {
		if value != "" && (own || name == "size" || name == "quality") {
			fields[name] = value
		}
	}
	res.Ignored = slices.DeleteFunc(r.Named(), func(n string) bool {
		return n == "size" || n == "quality" || n == "aspectRatio" && r.Size == "" && size != "" ||
			own && (n == "outputFormat" || n == "background")
	})
	header := http.Header{}
	if !s.Key.IsZero() {
		header.Set("Authorization", "Bearer "+s.Key.Reveal())
	}
	var body io.Reader
	if len(r.Sources) == 0 {
		u.Path += "/images/generations"
		data, err := json.Marshal(fields)
		if err != nil {
			return res, used, err
		}
		header.Set("Content-Type", "application/json")
		body = bytes.NewReader(data)
	} else {
		u.Path += "/images/edits"
		data, kind, err := form(fields, r.Sources)
		if err != nil {
			return res, used, err
		}
		header.Set("Content-Type", kind)
		body = bytes.NewReader(data)
	}
	var answer struct {
		Data []struct {
			Base64 string `json:"b64_json"`
			URL    string `json:"url"`
		} `json:"data"`
		Usage struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
		} `json:"usage"`
	}
	if err := s.ask(ctx, u, header, body, &answer); err != nil {
		return res, used, err
	}
	used = llm.Usage{Input: answer.Usage.Input, Output: answer.Usage.Output}
	for _, d := range answer.Data {
		if d.Base64 == "" {
			return res, used, errors.New("the service answered with a link instead of the picture; links are not followed")
		}
		b, err := base64.StdEncoding.DecodeString(d.Base64)
		if err != nil {
			return res, used, fmt.Errorf("the answer: %w", err)
		}
		res.Pictures = append(res.Pictures, b)
	}
	return res, used, nil
}

// form returns the fields and pictures of an edit.
func form(fields map[string]any, sources []drawing.Source) (data []byte, kind string, err error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for name, value := range fields {
		if err := w.WriteField(name, fmt.Sprint(value)); err != nil {
			return nil, "", err
		}
	}
	for i, s := range sources {
		h := textproto.MIMEHeader{}
		_, end, _ := strings.Cut(s.Type, "/")
		h.Set("Content-Disposition", fmt.Sprintf(`form-data; name="image[]"; filename="picture%d.%s"`, i+1, end))
		h.Set("Content-Type", s.Type)
		part, err := w.CreatePart(h)
		if err == nil {
			_, err = part.Write(s.Data)
		}
		if err != nil {
			return nil, "", err
		}
	}
	err = w.Close()
	return b.Bytes(), w.FormDataContentType(), err
}

// gemini asks Gemini, once for each picture.
func (s *service) gemini(ctx context.Context, r drawing.Request) (res drawing.Result, used llm.Usage, err error) {
	base := strings.TrimSuffix(s.BaseURL, "/openai") // the address for OpenAI's format
	u, err := dialect.BaseURL(base, "https://generativelanguage.googleapis.com")
	if err != nil {
		return res, used, err
	}
	if u.Path == "" {
		u.Path = "/v1beta"
	}
	u = u.JoinPath("models", strings.TrimPrefix(s.model, "models/")+":generateContent")
	parts := []any{map[string]any{"text": r.Prompt}}
	for _, src := range r.Sources {
		parts = append(parts, map[string]any{"inlineData": map[string]any{"mimeType": src.Type, "data": src.Data}})
	}
	config := map[string]any{"responseModalities": []string{"TEXT", "IMAGE"}}
	image := map[string]any{}
	if r.Aspect != "" {
		image["aspectRatio"] = r.Aspect
	}
	if r.Resolution != "" {
		image["imageSize"] = r.Resolution
	}
	if len(image) > 0 {
		config["imageConfig"] = image
	}
	res.Ignored = slices.DeleteFunc(r.Named(), func(n string) bool { return n == "aspectRatio" || n == "resolution" })
	body, err := json.Marshal(map[string]any{
		"contents":         []any{map[string]any{"role": "user", "parts": parts}},
		"generationConfig": config,
	})
	if err != nil {
		return res, used, err
	}
	for range max(r.Count, 1) {
		header := http.Header{"Content-Type": {"application/json"}}
		if !s.Key.IsZero() {
			header.Set("X-Goog-Api-Key", s.Key.Reveal())
		}
		var answer geminiAnswer
		if err := s.ask(ctx, u, header, bytes.NewReader(body), &answer); err != nil {
			return res, used, err
		}
		used.Input += answer.Usage.Prompt
		used.Output += answer.Usage.Output
		one, err := answer.pictures()
		if err != nil {
			return res, used, err
		}
		res.Pictures = append(res.Pictures, one...)
	}
	return res, used, nil
}

// geminiAnswer is an answer of Gemini.
type geminiAnswer struct {
	Candidates []struct {
		Content struct {
			Parts []struct {
				Text    string `json:"text"`
				Picture *struct {
					Data []byte `json:"data"`
				} `json:"inlineData"`
			} `json:"parts"`
		} `json:"content"`
		Reason string `json:"finishReason"`
	} `json:"candidates"`
	Feedback struct {
		Reason string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage struct {
		Prompt int64 `json:"promptTokenCount"`
		Output int64 `json:"candidatesTokenCount"`
	} `json:"usageMetadata"`
}

// pictures returns the pictures of an answer, or why there are none.
func (a geminiAnswer) pictures() (out [][]byte, err error) {
	why := a.Feedback.Reason
	for _, c := range a.Candidates {
		for _, p := range c.Content.Parts {
			if p.Picture != nil {
				out = append(out, p.Picture.Data)
			} else if p.Text != "" {
				why = p.Text
			}
		}
		why = cmp.Or(why, c.Reason)
	}
	if out == nil {
		if r := []rune(why); len(r) > 300 {
			why = string(r[:300]) + "…"
		}
		return nil, fmt.Errorf("there is no picture in the answer: %s", cmp.Or(why, "no reason given"))
	}
	return out, nil
}

// ask sends a request and decodes the answer.
func (s *service) ask(ctx context.Context, u *url.URL, header http.Header, body io.Reader, into any) (err error) {
	defer func() {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // the URL may contain a password
		}
		if err != nil {
			err = errors.New(s.redactor.Redact(err.Error()))
		}
	}()
	if s.HTTP == nil || s.HTTP.Transport == nil {
		return errors.New("the service has no HTTP client")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), body)
	if err != nil {
		return err
	}
	for _, h := range [...]http.Header{header, s.Header} {
		for name, values := range h {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	req.Header.Set("User-Agent", "chela")
	resp, err := s.HTTP.Transport.RoundTrip(req) // it does not follow redirects, which would get the key
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(io.LimitReader(resp.Body, maxFailure))
		_, message := dialect.ParseError(data)
		return fmt.Errorf("status %d: %s", resp.StatusCode, cmp.Or(message, http.StatusText(resp.StatusCode)))
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return err
	case len(data) > maxAnswer:
		return errors.New("the answer is too large")
	}
	if json.Unmarshal(data, into) != nil {
		return errors.New("the answer is not as the format has it: is the base URL right?")
	}
	return nil
}
