package matrix

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// Files of an account.
const (
	loginFile = "login.json" // the session that was made with the password
	stateFile = "sync.json"
	maxFile   = 4 << 20
)

// savedLogin is the content of loginFile.
type savedLogin struct {
	Homeserver  string `json:"homeserver"`
	UserID      string `json:"userId"`
	AccessToken string `json:"accessToken"`
	DeviceID    string `json:"deviceId"`
}

// state is the content of stateFile.
type state struct {
	UserID string            `json:"userId"`
	Since  string            `json:"since"`
	Direct map[string]string `json:"direct,omitempty"` // the last direct room of a person
}

// maxDirect is how many direct rooms are remembered.
const maxDirect = 10_000

// readFile reads a file of the account into v; it reports whether there is one.
func (b *bot) readFile(name string, v any) (bool, error) {
	file := filepath.Join(b.env.Dir, name)
	info, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err == nil && info.Size() > maxFile {
		err = fmt.Errorf("%s is too long", file)
	}
	if err != nil {
		return false, fmt.Errorf("matrix: %w", err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return false, fmt.Errorf("matrix: %w", err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		b.env.Log.Warn("a file of the account is damaged and not used", "file", name)
		return false, nil
	}
	return true, nil
}

func (b *bot) writeFile(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.env.Dir, 0o700); err != nil {
		return fmt.Errorf("matrix: %w", err)
	}
	if err := atomicfile.Write(filepath.Join(b.env.Dir, name), data, 0o600); err != nil {
		return fmt.Errorf("matrix: %w", err)
	}
	return nil
}

// session makes sure that there is an access token and that the user id is known.
func (b *bot) session(ctx context.Context) error {
	b.login.Lock()
	defer b.login.Unlock()
	b.mu.Lock()
	known := b.me != ""
	b.mu.Unlock()
	if known {
		return nil
	}
	if b.c.token.IsZero() {
		if err := b.logIn(ctx); err != nil {
			return err
		}
	} else {
		b.setToken(b.c.token)
	}
	var who struct {
		UserID string `json:"user_id"`
	}
	err := b.get(ctx, "/_matrix/client/v3/account/whoami", nil, &who)
	if is(err, "M_UNKNOWN_TOKEN") && b.c.token.IsZero() {
		if err := b.forget(); err != nil {
			return err
		}
		return &channel.Error{Err: err} // the next attempt uses the password
	}
	if err != nil {
		return err
	}
	if b.c.UserID != "" && b.c.UserID != who.UserID {
		return &channel.Error{Permanent: true,
			Err: fmt.Errorf("matrix: the credentials belong to %s, but channels.matrix.userId is %s", who.UserID, b.c.UserID)}
	}
	var profile struct {
		Name string `json:"displayname"`
	}
	if err := b.get(ctx, path("/_matrix/client/v3/profile/%s/displayname", who.UserID), nil, &profile); err != nil &&
		ctx.Err() != nil {
		return err // without a display name the account is known by its id
	}
	st := &state{}
	if ok, err := b.readFile(stateFile, st); err != nil {
		return err
	} else if !ok || st.UserID != who.UserID {
		st = &state{UserID: who.UserID}
	}
	if st.Direct == nil {
		st.Direct = map[string]string{}
	}
	var data json.RawMessage
	err = b.get(ctx, path("/_matrix/client/v3/user/%s/account_data/m.direct", who.UserID), nil, &data)
	if err != nil && !final(err) {
		return err
	}
	direct := map[string][]string{}
	if len(data) > 0 && json.Unmarshal(data, &direct) != nil {
		direct = map[string][]string{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.me, b.shown, b.state, b.direct = who.UserID, profile.Name, st, direct
	return nil
}

func (b *bot) setToken(v secret.Value) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.token = v
}

// forget forgets the session.
func (b *bot) forget() error {
	b.mu.Lock()
	b.token, b.me = secret.Value{}, ""
	b.mu.Unlock()
	if err := os.Remove(filepath.Join(b.env.Dir, loginFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("matrix: %w", err)
	}
	return nil
}

// logIn uses the stored session, or makes one with the password.
func (b *bot) logIn(ctx context.Context) error {
	var saved savedLogin
	ok, err := b.readFile(loginFile, &saved)
	if err != nil {
		return err
	}
	if ok && saved.Homeserver == b.c.base.String() && saved.UserID == b.c.UserID && saved.AccessToken != "" {
		b.setToken(secret.New(saved.AccessToken))
		return nil
	}
	in := map[string]any{
		"type": "m.login.password", "password": b.c.password.Reveal(),
		"identifier":                  map[string]string{"type": "m.id.user", "user": b.c.UserID},
		"initial_device_display_name": cmp.Or(b.c.DeviceName, "Chela"),
	}
	if id := cmp.Or(b.c.DeviceID, saved.DeviceID); id != "" {
		in["device_id"] = id
	}
	b.setToken(secret.Value{})
	var out struct {
		UserID      string `json:"user_id"`
		AccessToken string `json:"access_token"`
		DeviceID    string `json:"device_id"`
	}
	err = b.call(ctx, http.MethodPost, "/_matrix/client/v3/login", nil, in, &out)
	if is(err, "M_FORBIDDEN") || is(err, "M_USER_DEACTIVATED") {
		return &channel.Error{Permanent: true,
			Err: fmt.Errorf("%w (check channels.matrix.userId and channels.matrix.password)", err)}
	}
	if err != nil {
		return err
	}
	if out.AccessToken == "" {
		return &channel.Error{Err: errors.New("matrix: the homeserver returned no access token")}
	}
	if err := b.writeFile(loginFile, savedLogin{b.c.base.String(), b.c.UserID, out.AccessToken, out.DeviceID}); err !=
		nil {
		return err
	}
	b.setToken(secret.New(out.AccessToken))
	return nil
}

// saveState stores the state with a new token.
func (b *bot) saveState(since string) error {
	b.mu.Lock()
	b.state.Since = since
	data := *b.state
	data.Direct = map[string]string{}
	for k, v := range b.state.Direct {
		data.Direct[k] = v
	}
	b.mu.Unlock()
	return b.writeFile(stateFile, data)
}

// expired drops the session if err says that its token is not valid any more and the
// password can make another one. The result is the error to return.
func (b *bot) expired(err error) error {
	if !is(err, "M_UNKNOWN_TOKEN") || !b.c.token.IsZero() {
		return err
	}
	if ferr := b.forget(); ferr != nil {
		return ferr
	}
	return &channel.Error{Err: fmt.Errorf("the session has ended; logging in again: %w", errors.Unwrap(err))}
}
