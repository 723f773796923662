package channel

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"

	"github.com/chela-ai/chela/internal/kit/secret"
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

	// Can is a nil pointer of the channel's type, or a value of it that is never used.
	// Abilities such as [Editor] are found by [As] on it before an account exists; nil:
	// not known.
	Can Channel

	// Hints are sentences for the model about its messages on the channel, such as
	// which markup is shown and how buttons are made.
	Hints []string

	// Revision identifies the program that implements the channel. When it changes, the
	// accounts are restarted; "": the channel is part of this build.
	Revision string

	// Setup are the settings that an account needs, in the order in which a person is asked
	// for them.
	Setup []Setting

	// Internal says that the channel has no section in the configuration and is not
	// shown to people. Its only account is started when something is sent to it.
	Internal bool

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

// Setting is a setting of an account.
type Setting struct {
	Key      string // in the section of the account, such as botToken or imap.host
	Title    string // in a few words
	Help     string // where a person gets it; may be empty
	Env      string // environment variable that the account "default" uses if the key is not set; "": none
	Secret   bool
	Required bool
}

// Env is what a channel may use.
type Env struct {
	Log  *slog.Logger
	HTTP *http.Client // the way out, under the egress rules
	Dir  string       // directory for files of this account; made by the channel when needed

	// Trusted is like HTTP, and also reaches the named hosts ("name" or "name:port")
	// wherever they are: those of URLs in the account's configuration. Dial makes other
	// connections under the same rules.
	Trusted func(hosts ...string) *http.Client
	Dial    func(ctx context.Context, addr string, hosts ...string) (net.Conn, error)

	Getenv func(string) string // environment variables

	// Moved tells that the platform has given a group another id.
	Moved func(from, to string)

	// Report tells whether the connection to the platform works: nil each time that it
	// was made, or why it was lost. The channel continues to reconnect.
	Report func(error)
}

// Variable returns the environment variable with a name for the account "default", and ""
// for other accounts: a variable cannot be meant for all of them.
func (e Env) Variable(account, name string) string {
	if account != "default" || e.Getenv == nil {
		return ""
	}
	return e.Getenv(name)
}

// Secret returns a secret of an account: that of the configuration, or else the
// environment variable with a name, if name is not empty. The zero value is no error.
func (e Env) Secret(account string, ref secret.Ref, name string) (secret.Value, error) {
	if ref.IsZero() && name != "" {
		return secret.New(e.Variable(account, name)), nil
	}
	return ref.Resolve(e.Getenv)
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

// Find returns the factory of a channel by its name, or else by an alias; nil: there is
// none.
func Find(factories []Factory, name string) *Factory {
	i := slices.IndexFunc(factories, func(f Factory) bool { return f.Name == name })
	if i < 0 {
		i = slices.IndexFunc(factories, func(f Factory) bool { return slices.Contains(f.Aliases, name) })
	}
	if i < 0 {
		return nil
	}
	return &factories[i]
}
