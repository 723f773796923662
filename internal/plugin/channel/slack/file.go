package slack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/backoff"
)

const (
	fileTime   = 5 * time.Minute // to transfer a file
	sharePause = 500 * time.Millisecond
	shareTries = 4
)

// share uploads the files of a part and shares them as one message. It returns the
// timestamp of the message. Files that were uploaded by an earlier attempt are not uploaded
// again.
func (b *bot) share(ctx context.Context, pr *progress, conv string, p channel.Part, caption string) (string, error) {
	var files []map[string]string
	for i, m := range p.Media {
		label := m.Name
		if label == "" {
			label = "file" + extension(m.Type)
		}
		if i >= len(pr.ids) {
			id, err := b.upload(ctx, label, m.Data)
			if err != nil {
				return "", err
			}
			pr.ids = append(pr.ids, id)
		}
		files = append(files, map[string]string{"id": pr.ids[i], "title": label})
	}
	params := url.Values{"files": {encode(files)}, "channel_id": {conv}}
	if caption != "" {
		params.Set("initial_comment", caption)
	}
	if p.Address.Thread != "" {
		params.Set("thread_ts", p.Address.Thread)
	}
	if err := b.call(ctx, "files.completeUploadExternal", params, nil); err != nil {
		return "", err
	}
	return b.shared(ctx, pr.ids[0], conv), nil
}

// extension returns the usual end of the name of a file of a type.
func extension(typ string) string {
	if all, err := mime.ExtensionsByType(typ); err == nil && len(all) > 0 {
		return all[0]
	}
	return ""
}

// upload uploads a file, which is not shown until it is shared.
func (b *bot) upload(ctx context.Context, label string, data []byte) (id string, err error) {
	var r struct {
		URL string `json:"upload_url"`
		ID  string `json:"file_id"`
	}
	if err := b.settled(ctx, "files.getUploadURLExternal",
		url.Values{"filename": {label}, "length": {strconv.Itoa(len(data))}}, &r); err != nil {
		return "", err
	}
	if err := b.checkURL(r.URL, "https", "http"); err != nil {
		return "", fmt.Errorf("slack: upload of %s: %w", label, err)
	}
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(data))
	if err != nil {
		return "", fmt.Errorf("slack: upload of %s: %w", label, bare(err))
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	a, err := channel.Call(b.http, req, 64<<10)
	switch {
	case err != nil:
		return "", certain(fmt.Errorf("slack: upload of %s: %w", label, bare(err)))
	case a.Status == http.StatusTooManyRequests:
		return "", limited(a)
	case a.Status != http.StatusOK:
		return "", &channel.Error{Err: fmt.Errorf("slack: upload of %s: the server answered with status %d", label, a.Status)}
	}
	return r.ID, nil
}

// shared returns the timestamp of the message that shares a file. Slack makes the message
// shortly after it accepted the files. If there is none yet, the id of the file is returned.
func (b *bot) shared(ctx context.Context, id, conv string) string {
	for try := range shareTries {
		if try > 0 {
			if backoff.Sleep(ctx, sharePause<<try) != nil {
				return id
			}
		}
		var r struct {
			File struct {
				Shares map[string]map[string][]struct {
					TS string `json:"ts"`
				} `json:"shares"`
			} `json:"file"`
		}
		if _, err := b.read(ctx, "files.info", url.Values{"file": {id}}, &r); err != nil {
			b.env.Log.Debug("the message of a file was not found", "file", id, "err", err)
			continue
		}
		for _, chats := range r.File.Shares {
			if list := chats[conv]; len(list) > 0 && list[0].TS != "" {
				return list[0].TS
			}
		}
	}
	return id
}

// Fetch gets the content of a file. The bot's token is sent to Slack only.
func (b *bot) Fetch(ctx context.Context, m chela.Media, most int) (chela.Media, error) {
	if err := b.checkURL(m.Source, "https", "http"); err != nil {
		return m, &channel.Error{Permanent: true, Err: fmt.Errorf("slack: file %s: %w", m.Name, err)}
	}
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.Source, nil)
	if err != nil {
		return m, fmt.Errorf("slack: file %s: %w", m.Name, bare(err))
	}
	req.Header.Set("Authorization", "Bearer "+b.token.Reveal())
	client := *b.http
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a, err := channel.Call(&client, req, int64(most))
	switch {
	case err != nil:
		return m, fmt.Errorf("slack: file %s: %w", m.Name, bare(err))
	case a.Status == http.StatusTooManyRequests:
		return m, limited(a)
	case a.Status == http.StatusNotFound || a.Status == http.StatusGone:
		return m, &channel.Error{Permanent: true, Err: fmt.Errorf("slack: file %s: %w", m.Name, channel.ErrGone)}
	case a.Status >= 500:
		return m, &channel.Error{Err: fmt.Errorf("slack: file %s: the server answered with status %d", m.Name, a.Status)}
	case a.Status != http.StatusOK || strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") &&
		!strings.HasPrefix(m.Type, "text/html"):
		// Slack answers with its page for the sign-in, or leads to it.
		return m, &channel.Error{Permanent: true, Err: fmt.Errorf("slack: file %s: %w", m.Name,
			errors.New("not allowed (add the scope files:read at https://api.slack.com/apps, OAuth & Permissions, and install the app again)"))}
	}
	m.Data, m.Source, m.Bytes = a.Body, "", 0
	return m, nil
}
