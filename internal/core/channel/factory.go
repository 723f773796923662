package channel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
)

// Factory describes a kind of channel and makes its accounts.
//
// Its configuration is channels.<Name> with OpenClaw's layout: the members of
// the section are the account "default", or, when there is an object "accounts",
// the defaults of every account in it. See [Sections].
type Factory struct {
	Name    string   // the channel's name in addresses and in the configuration
	Aliases []string // other names that addresses may use
	Limits  Limits

	// Can is a nil pointer of the channel's type. Abilities such as [Editor] are
	// found by assertion on it before an account exists; nil: not known.
	Can Channel

	// Accounts returns the ids of the accounts in the channel's section. The id ""
	// stands for one instance that serves every account. nil: the accounts that
	// Sections finds.
	Accounts func(raw json.RawMessage) []string

	// Identity returns what the platform knows an account by, such as the number of
	// a bot. Two accounts of the same identity are refused, because both would
	// receive every message; nil or "": not checked.
	Identity func(raw json.RawMessage) string

	// New makes an account from its section. It opens no connection: Run does.
	New func(env Env, account string, raw json.RawMessage) (Channel, error)
}

// Env is what a channel may use.
type Env struct {
	Log  *slog.Logger
	HTTP *http.Client // the way out, under the egress rules
	Dir  string       // directory for files of this account; made by the channel when needed
}

// Sections returns the sections of a channel's accounts by their ids: each
// member of "accounts" over the members beside it, or the whole section as the
// account "default" when there is no such object. Accounts with "enabled": false
// are left out, and all of them when the channel has it.
func Sections(raw json.RawMessage) (map[string]json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	if !enabled(all) {
		return nil, nil
	}
	inner := all["accounts"]
	delete(all, "accounts")
	if inner == nil {
		section, err := json.Marshal(all)
		return map[string]json.RawMessage{"default": section}, err
	}
	var accounts map[string]map[string]json.RawMessage
	if err := json.Unmarshal(inner, &accounts); err != nil {
		return nil, fmt.Errorf("accounts: %w", err)
	}
	out := map[string]json.RawMessage{}
	for id, own := range accounts {
		if !enabled(own) {
			continue
		}
		merged := maps.Clone(all)
		maps.Copy(merged, own)
		section, err := json.Marshal(merged)
		if err != nil {
			return nil, err
		}
		out[id] = section
	}
	return out, nil
}

// enabled reports whether a section does not say "enabled": false.
func enabled(section map[string]json.RawMessage) bool {
	return !bytes.Equal(bytes.TrimSpace(section["enabled"]), []byte("false"))
}

// AccountSections returns the sections of the accounts that f has in a channel's
// section, by their ids. An account that Sections does not know has the section
// of the channel.
func (f *Factory) AccountSections(raw json.RawMessage) (map[string]json.RawMessage, error) {
	found, err := Sections(raw)
	if err != nil {
		return nil, err
	}
	if f.Accounts == nil {
		return found, nil
	}
	out := map[string]json.RawMessage{}
	for _, id := range f.Accounts(raw) {
		section, ok := found[id]
		if !ok {
			section = raw
		}
		out[id] = section
	}
	return out, nil
}

// Named reports whether name is the channel's name or one of its aliases.
func (f *Factory) Named(name string) bool {
	return name == f.Name || slices.Contains(f.Aliases, name)
}
