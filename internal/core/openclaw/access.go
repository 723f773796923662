package openclaw

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/kit/secret"
)

// Person is somebody who was admitted to a chat app by a pairing code.
type Person struct{ Channel, Account, ID string }

// People returns the admitted people. channels are the names of chat apps: they tell which
// part of the name of a file is that of an account.
func (h *Home) People(ctx context.Context, channels []string) []Person {
	var all []Person
	add := func(p Person) {
		p.ID = strings.TrimSpace(p.ID)
		if p.Account = cmp.Or(p.Account, "default"); p.ID != "" && p.Channel != "" && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	h.rows(ctx, stateDB, "channel_pairing_allow_entries", nil, []string{"channel_key", "account_id", "sort_order"},
		[]string{"entry"}, func(r row) error {
			add(Person{r.text("channel_key"), r.text("account_id"), r.text("entry")})
			return nil
		})
	const dir = "credentials"
	for _, e := range h.list(dir) {
		base, ok := strings.CutSuffix(e.Name(), "-allowFrom.json")
		if !ok || base == "" {
			continue
		}
		var file struct {
			Allow []any `json:"allowFrom"`
		}
		if !h.readJSON(path.Join(dir, e.Name()), &file) {
			continue
		}
		channel, account := splitAccount(base, channels)
		for _, id := range file.Allow[:min(len(file.Allow), maxList)] {
			switch id := id.(type) {
			case string:
				add(Person{channel, account, id})
			case json.Number:
				add(Person{channel, account, id.String()})
			}
		}
	}
	return all
}

// splitAccount splits CHANNEL or CHANNEL-ACCOUNT.
func splitAccount(base string, channels []string) (channel, account string) {
	for _, c := range channels {
		if base == c || strings.HasPrefix(base, c+"-") && len(c) > len(channel) {
			channel = c
		}
	}
	if channel != "" {
		return channel, strings.TrimPrefix(base[len(channel):], "-")
	}
	channel, account, _ = strings.Cut(base, "-")
	return channel, account
}

// Device is a paired device.
type Device struct {
	ID          string           `json:"deviceId"`
	PublicKey   string           `json:"publicKey"` // base64url
	DisplayName string           `json:"displayName"`
	Label       string           `json:"operatorLabel"`
	Platform    string           `json:"platform"`
	Family      string           `json:"deviceFamily"`
	ClientID    string           `json:"clientId"`
	ClientMode  string           `json:"clientMode"`
	Tokens      map[string]Token `json:"tokens"` // by role
	Created     int64            `json:"createdAtMs"`
	Approved    int64            `json:"approvedAtMs"`
	LastSeen    int64            `json:"lastSeenAtMs"`
}

// Token is the token of a device in a role.
type Token struct {
	Token   secret.Value
	Role    string   `json:"role"`
	Scopes  []string `json:"scopes"`
	Created int64    `json:"createdAtMs"`
	Rotated int64    `json:"rotatedAtMs"`
	Used    int64    `json:"lastUsedAtMs"`
	Revoked int64    `json:"revokedAtMs"`
}

// UnmarshalJSON reads a token.
func (t *Token) UnmarshalJSON(b []byte) error {
	type plain Token
	var v struct {
		plain
		Token string `json:"token"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*t = Token(v.plain)
	t.Token = secret.New(v.Token)
	return nil
}

// Devices returns the paired devices.
func (h *Home) Devices(ctx context.Context) []Device {
	var all []Device
	add := func(d Device) {
		if d.ID != "" && !slices.ContainsFunc(all, func(o Device) bool { return o.ID == d.ID }) {
			all = append(all, d)
		}
	}
	h.rows(ctx, stateDB, "device_pairing_paired", nil, []string{"created_at_ms"},
		[]string{"device_id", "public_key", "tokens_json"}, func(r row) error {
			d := Device{
				ID:          r.text("device_id"),
				PublicKey:   r.text("public_key"),
				DisplayName: r.text("display_name"),
				Label:       r.text("operator_label"),
				Platform:    r.text("platform"),
				Family:      r.text("device_family"),
				ClientID:    r.text("client_id"),

				ClientMode: r.text("client_mode"),
				Created:    r.int("created_at_ms"),
				Approved:   r.int("approved_at_ms"),
				LastSeen:   r.int("last_seen_at_ms"),
			}
			if s := r.text("tokens_json"); s != "" {
				if err := json.Unmarshal([]byte(s), &d.Tokens); err != nil {
					h.problem(stateDB, fmt.Errorf("the tokens of device %s: %w", d.ID, err))
					return nil
				}
			}
			add(d)
			return nil
		})
	const file = "devices/paired.json"
	var stored map[string]json.RawMessage
	if h.readJSON(file, &stored) {
		for _, id := range slices.Sorted(maps.Keys(stored)) {
			var d Device
			if err := json.Unmarshal(stored[id], &d); err != nil {
				h.problem(file, fmt.Errorf("device %s: %w", id, err))
				continue
			}
			add(d)
		}
	}
	return all
}

// ExecApprovals returns the rules about commands, and where they are from; nil: none.
func (h *Home) ExecApprovals(ctx context.Context) (text []byte, from string) {
	h.rows(ctx, stateDB, "exec_approvals_config", map[string]any{"config_key": "current"}, nil,
		[]string{"raw_json"}, func(r row) error {
			text, from = []byte(r.text("raw_json")), stateDB
			return nil
		})
	const file = "exec-approvals.json"
	if text == nil {
		b, err := h.read(file, maxText)
		if err == nil {
			return b, file
		}
		if !errors.Is(err, fs.ErrNotExist) {
			h.problem(file, err)
		}
	}
	return text, from
}

// Key is a saved credential of a model provider.
type Key struct {
	Agent    string // "": of all agents
	ID       string // provider:name
	Provider string
	Type     string       // api_key, token, oauth
	Secret   secret.Value // zero: it is not in the file
	Expires  int64        // milliseconds; 0: never
	File     string
}

// Name returns the name of the key among those of its provider.
func (k Key) Name() string {
	_, name, _ := strings.Cut(k.ID, ":")
	return name
}

// profiles is a store of credentials.
type profiles struct {
	Profiles map[string]struct {
		Type     string      `json:"type"`
		Mode     string      `json:"mode"`
		Provider string      `json:"provider"`
		Key      any         `json:"key"`
		Token    any         `json:"token"`
		Expires  json.Number `json:"expires"`
	} `json:"profiles"`
}

// keys returns the credentials of a store.
func (p profiles) keys(agent, file string) []Key {
	var all []Key
	for _, id := range slices.Sorted(maps.Keys(p.Profiles)) {
		c := p.Profiles[id]
		k := Key{Agent: agent, ID: id, Provider: c.Provider, Type: cmp.Or(c.Type, c.Mode), File: file}
		k.Expires, _ = c.Expires.Int64()
		value := c.Key
		if k.Type == "token" {
			value = c.Token
		}
		if s, ok := value.(string); ok && k.Type != "oauth" {
			k.Secret = secret.New(strings.TrimSpace(s))
		}
		if k.Provider == "" {
			k.Provider, _, _ = strings.Cut(id, ":")
		}
		all = append(all, k)
	}
	return all
}

// Keys returns the saved credentials of model providers.
func (h *Home) Keys(ctx context.Context) []Key {
	var all []Key
	add := func(agent, file, text string) error {
		var p profiles
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return fmt.Errorf("the saved keys: %w", err)
		}
		all = append(all, p.keys(agent, file)...)
		return nil
	}
	h.rows(ctx, stateDB, "config_machine_state", map[string]any{"state_key": "authProfiles.store"}, nil,
		[]string{"value_json"}, func(r row) error {
			return add("", stateDB, r.text("value_json"))
		})
	for _, agent := range h.Agents() {
		db := agentDB(agent)
		h.rows(ctx, db, "auth_profile_store", nil, nil, []string{"store_json"}, func(r row) error {
			return add(agent, db, r.text("store_json"))
		})
		file := path.Join("agents", agent, "agent", "auth-profiles.json")
		var p profiles
		if h.readJSON(file, &p) {
			all = append(all, p.keys(agent, file)...)
		}
	}
	return all
}
