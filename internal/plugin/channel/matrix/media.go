package matrix

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

// mediaTimeout is the longest time of an upload or a download.
const mediaTimeout = 5 * time.Minute

// Fetch implements channel.Fetcher.
func (b *bot) Fetch(ctx context.Context, m chela.Media, most int) (chela.Media, error) {
	server, id, ok := strings.Cut(strings.TrimPrefix(m.Source, "mxc://"), "/")
	if !ok || server == "" || id == "" || strings.ContainsAny(server+id, "/?#") {
		return m, &channel.Error{Permanent: true, Err: errors.New("matrix: the address of the file is invalid")}
	}
	if err := b.session(ctx); err != nil {
		return m, err
	}
	ctx, cancel := context.WithTimeout(ctx, mediaTimeout)
	defer cancel()
	answer, err := b.raw(ctx, http.MethodGet, path("/_matrix/client/v1/media/download/%s/%s", server, id),
		nil, "", nil, int64(most))
	if is(err, "M_UNRECOGNIZED") { // a homeserver from before version 1.11
		answer, err = b.raw(ctx, http.MethodGet, path("/_matrix/media/v3/download/%s/%s", server, id),
			nil, "", nil, int64(most))
	}
	if err != nil {
		return m, err
	}
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err == nil && (m.Type == "" || m.Type == "application/octet-stream") {
		m.Type = kind
	}
	m.Data, m.Source, m.Bytes = answer.Body, "", 0
	return m, nil
}

// attachment uploads a file and returns the content of the message with it.
func (b *bot) attachment(ctx context.Context, m chela.Media, caption string) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, mediaTimeout)
	defer cancel()
	kind := cmp.Or(m.Type, "application/octet-stream")
	name := cmp.Or(m.Name, "file")
	var out struct {
		URI string `json:"content_uri"`
	}
	// An upload that is repeated leaves a file that nobody sees.
	err := b.do(ctx, http.MethodPost, "/_matrix/media/v3/upload", url.Values{"filename": {name}}, kind,
		bytes.NewReader(m.Data), maxAnswer, &out)
	if is(err, "M_TOO_LARGE") {
		return nil, &channel.Error{Permanent: true,
			Err: fmt.Errorf("matrix: %s has %d bytes, more than the homeserver accepts: %w", name, len(m.Data), err)}
	}
	if err != nil {
		if errors.Is(err, channel.ErrAmbiguous) && ctx.Err() == nil { // no message was sent
			return nil, &channel.Error{Err: fmt.Errorf("matrix: %s was not uploaded: the connection broke", name)}
		}
		return nil, err
	}
	c := map[string]any{"msgtype": "m.file", "body": name}
	if strings.TrimSpace(caption) != "" {
		c = body(caption)
	}
	c["msgtype"], c["filename"], c["url"] = "m.file", name, out.URI
	c["info"] = map[string]any{"mimetype": kind, "size": len(m.Data)}
	c["m.mentions"] = struct{}{}
	for _, prefix := range []string{"image", "audio", "video"} {
		if strings.HasPrefix(kind, prefix+"/") {
			c["msgtype"] = "m." + prefix
		}
	}
	return c, nil
}
