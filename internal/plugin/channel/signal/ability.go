package signal

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

// Probe checks that the daemon answers and has the account.
func (b *bot) Probe(ctx context.Context) error {
	if err := b.check(ctx); err != nil {
		return err
	}
	var accounts []struct {
		Number string `json:"number"`
	}
	err := b.read(ctx, "listAccounts", nil, maxAnswer, &accounts)
	if refused, ok := errors.AsType[*rpcError](err); ok && refused.Code == codeMethod {
		// The daemon was started for one account, and would have ended if that did not exist.
		return b.read(ctx, "version", nil, maxAnswer, nil)
	}
	if err != nil {
		return err
	}
	for _, a := range accounts {
		if a.Number == b.c.Account {
			return nil
		}
	}
	return &channel.Error{Permanent: true,
		Err: fmt.Errorf(
			"signal: signal-cli at %s has no account %s (link it: signal-cli link -n Chela; or check channels.signal.account)",
			b.c.base, b.c.Account)}
}

// check asks the daemon whether it runs.
func (b *bot) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.c.base.String()+"/api/v1/check", nil)
	if err != nil {
		return fmt.Errorf("signal: %w", err)
	}
	answer, err := channel.Call(b.client, r, maxAnswer)
	if err != nil {
		return b.unreachable(ctx, err)
	}
	if answer.Status != http.StatusOK {
		return b.refusedStatus("the check", answer)
	}
	return nil
}

// Search finds people and groups by their names. Without a kind it finds both.
func (b *bot) Search(ctx context.Context, kind chela.PeerKind, query string, n int) ([]channel.Entry, error) {
	query = strings.ToLower(strings.TrimLeft(strings.TrimSpace(query), "@#"))
	var out []channel.Entry
	has := func(names ...string) bool {
		return len(out) < n &&
			slices.ContainsFunc(names, func(s string) bool { return strings.Contains(strings.ToLower(s), query) })
	}
	if kind == chela.Direct || kind == "" {
		var people []contact
		if err := b.read(ctx, "listContacts", nil, maxLists, &people); err != nil {
			return nil, err
		}
		for i := range people {
			p := &people[i]
			who := personOf(p.UUID, p.Number, "")
			name := short(cmp.Or(p.name(), p.Username, p.Number))
			if who.id() == "" || p.Blocked || p.Unregistered || b.self(who) || !has(name, p.Username, p.Number, who.uuid) {
				continue
			}
			out = append(out, channel.Entry{Peer: chela.Peer{Kind: chela.Direct, ID: who.id()}, Name: name,
				Handle: cmp.Or(p.Username, p.Number)})
		}
	}
	if kind == chela.Group || kind == "" {
		var groups []struct {
			ID      string `json:"id"`
			Name    string `json:"name"`
			Member  bool   `json:"isMember"`
			Blocked bool   `json:"isBlocked"`
		}
		if err := b.read(ctx, "listGroups", nil, maxLists, &groups); err != nil {
			return nil, err
		}
		for _, g := range groups {
			if g.ID != "" && g.Member && !g.Blocked && has(g.Name) {
				out = append(out, channel.Entry{Peer: chela.Peer{Kind: chela.Group, ID: g.ID}, Name: short(g.Name)})
			}
		}
	}
	return out, nil
}

// contact is a person in the list of contacts.
type contact struct {
	Number       string `json:"number"`
	UUID         string `json:"uuid"`
	Username     string `json:"username"`
	Name         string `json:"name"`
	NickName     string `json:"nickName"`
	Blocked      bool   `json:"isBlocked"`
	Unregistered bool   `json:"unregistered"`
	Profile      *struct {
		Given  string `json:"givenName"`
		Family string `json:"familyName"`
	} `json:"profile"`
}

func (c *contact) name() string {
	profile := ""
	if c.Profile != nil {
		profile = strings.TrimSpace(c.Profile.Given + " " + c.Profile.Family)
	}
	return cmp.Or(c.NickName, c.Name, profile)
}

// sourceOf returns where the content of an attachment comes from.
func sourceOf(chat chela.Peer, id string) (string, bool) {
	const most = 300
	if id == "" || len(id) > most || strings.ContainsAny(id, " \r\n\t/\\") {
		return "", false
	}
	return string(chat.Kind) + " " + chat.ID + " " + id, true
}

// Fetch implements channel.Fetcher.
func (b *bot) Fetch(ctx context.Context, m chela.Media, most int) (chela.Media, error) {
	parts := strings.Split(m.Source, " ")
	if len(parts) != 3 {
		return m, &channel.Error{Permanent: true, Err: errors.New("signal: the source of the attachment is invalid")}
	}
	if m.Bytes > most {
		return m, &channel.Error{Permanent: true, Err: fmt.Errorf("signal: the attachment has %d bytes, more than %d",
			m.Bytes, most)}
	}
	p, err := recipient(chela.Peer{Kind: chela.PeerKind(parts[0]), ID: parts[1]})
	if err != nil {
		return m, err
	}
	if to, ok := p["recipient"].([]string); ok {
		p["recipient"] = to[0]
	}
	p["id"] = parts[2]
	ctx, cancel := context.WithTimeout(ctx, mediaTimeout)
	defer cancel()
	var out struct {
		Data string `json:"data"`
	}
	limit := int64(base64.StdEncoding.EncodedLen(most)) + 1024
	if err := b.call(ctx, "getAttachment", p, limit, &out); err != nil {
		if errors.Is(err, channel.ErrAmbiguous) {
			return m, fmt.Errorf("signal: the attachment was not read: the connection broke, or it has more than %d bytes", most)
		}
		return m, err
	}
	data, err := base64.StdEncoding.DecodeString(out.Data)
	if err != nil {
		return m, fmt.Errorf("signal: the attachment is not base64: %w", err)
	}
	if len(data) > most {
		return m, &channel.Error{Permanent: true, Err: fmt.Errorf("signal: the attachment has %d bytes, more than %d",
			len(data), most)}
	}
	m.Data, m.Source, m.Bytes = data, "", 0
	return m, nil
}

// sendReceipts sends read receipts until the function that it returns is called.
func (b *bot) sendReceipts(ctx context.Context) (stop func()) {
	if !b.c.SendReadReceipts {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case r := <-b.receipts:
				err := b.read(ctx, "sendReceipt", params{"recipient": r.author, "targetTimestamp": []int64{r.time}, "type": "read"},
					maxAnswer, nil)
				if err != nil && ctx.Err() == nil {
					b.env.Log.Debug("read receipt not sent", "err", err)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

// receiptFor lets a read receipt be sent for a message, unless too many wait.
func (b *bot) receiptFor(in *chela.Inbound) {
	select {
	case b.receipts <- receiptOf{in.Sender.ID, in.Time.UnixMilli()}:
	default:
		b.env.Log.Debug("read receipt left out; too many wait", "message", in.ID)
	}
}
