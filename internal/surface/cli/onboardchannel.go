package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

const (
	connectWait = 30 * time.Second // for the connection of a chat app
	writeWait   = 10 * time.Minute // for the first message of the owner
)

// stepChannel sets up a chat app, tries it, and admits its owner.
func (o *onboarding) stepChannel(ctx context.Context) error {
	if o.skip.channel || o.quiet && o.channel == "" {
		return nil
	}
	o.title("A chat app")
	f, err := o.chooseChannel(ctx)
	if err != nil || f == nil {
		return err
	}
	for {
		err := o.setUpChannel(ctx, f)
		if err == nil || o.quiet || errors.Is(err, errInterrupted) || ctx.Err() != nil {
			return err
		}
		o.report(err, "")
		if again, aerr := o.agree(ctx, "Try again", true); aerr != nil || !again {
			return aerr
		}
		o.settings = slices.DeleteFunc(o.settings, func(s string) bool { // they may be what is wrong
			key, _, _ := strings.Cut(s, "=")
			return slices.ContainsFunc(f.Setup, func(s channel.Setting) bool { return s.Key == key })
		})
	}
}

// chooseChannel returns the chat app to set up; nil: none.
func (o *onboarding) chooseChannel(ctx context.Context) (*channel.Factory, error) {
	if o.channel == "" {
		names := o.channelNames()
		options := slices.Clone(names)
		for i, name := range names {
			if o.configured(name) {
				options[i] += " (set up)"
			}
		}
		i, err := o.choose(ctx, append([]string{"none now"}, options...))
		if err != nil || i == 0 {
			return nil, err
		}
		o.channel = names[i-1]
	}
	return o.factory(o.channel)
}

// channelNames returns the names of the chat apps that can be set up step by step.
func (o *onboarding) channelNames() (names []string) {
	for _, f := range o.app.Channels {
		if !f.Internal && len(f.Setup) > 0 {
			names = append(names, f.Name)
		}
	}
	return names
}

// configured reports whether the configuration has a section of a channel.
func (o *onboarding) configured(name string) bool {
	raw, err := o.section("channels." + name)
	return err == nil && raw != nil
}

// setUpChannel asks for the settings of a chat app and saves them once it connects.
func (o *onboarding) setUpChannel(ctx context.Context, f *channel.Factory) error {
	path, err := o.accountPath(f, o.account)
	if err != nil {
		return err
	}
	at := func(key string) string {
		return config.FormatPath(append(slices.Clone(path), strings.Split(key, ".")...))
	}
	given := map[string]string{}
	for _, s := range o.settings {
		key, value, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			return usage(fmt.Errorf("--set %s: want KEY=VALUE", s))
		}
		given[key] = value
	}
	var edits []config.Edit
	var missing []string
	for _, s := range f.Setup {
		value, ok := given[s.Key]
		delete(given, s.Key)
		present, err := o.section(at(s.Key))
		if err != nil {
			return err
		}
		switch fromEnv := s.Env != "" && o.account == "default" && o.env(s.Env) != ""; {
		case ok:
		case (present != nil || fromEnv) && !(o.again && s.Secret):
			if !o.quiet {
				fmt.Fprintf(o.stderr, "%s is set already\n", s.Title)
			}
			continue
		case o.quiet:
			if s.Required {
				missing = append(missing, "--set "+s.Key+"=…")
			}
			continue
		default:
			if value, err = o.askSetting(ctx, s); err != nil {
				return err
			}
		}
		if value != "" {
			edits = append(edits, setting(value, append(slices.Clone(path), strings.Split(s.Key, ".")...)...))
		}
	}
	for key, value := range given { // other keys of the channel
		edits = append(edits, config.Edit{Path: at(key), Value: jsonValue(value)})
	}
	if len(missing) > 0 {
		return usage(fmt.Errorf("%s needs %s", f.Name, strings.Join(missing, " ")))
	}
	old, err := o.section(config.FormatPath(path))
	if err != nil {
		return err
	}
	if old == nil && len(edits) == 0 || o.again { // everything is in the environment, or the account was logged out
		edits = append(edits, setting(true, append(slices.Clone(path), "enabled")...))
	}
	if path[len(path)-1] == o.account && o.account != "default" && o.configured(f.Name) {
		// The first named account would make the section of the channel mere defaults.
		if named, err := o.section("channels." + f.Name + ".accounts"); err == nil && named == nil {
			edits = append(edits, setting(map[string]any{}, "channels", f.Name, "accounts", "default"))
		}
	}
	written := func() {} // what the change said, once the settings are kept
	if len(edits) > 0 {
		if written, err = o.withheld(func() error { return o.change(ctx, edits...) }); err != nil {
			return err
		}
	}
	if !o.skip.check {
		if err := o.tryChannel(ctx, f.Name); err != nil {
			if errors.Is(err, errInterrupted) {
				written()
				return err
			}
			back := config.Edit{Path: config.FormatPath(path), Value: old}
			if cerr := o.silently(func() error { return o.change(context.WithoutCancel(ctx), back) }); cerr != nil {
				return errors.Join(err, cerr)
			}
			return fmt.Errorf("%w; the settings were not kept", err)
		}
	}
	written()
	o.done.Channel = f.Name
	return nil
}

// askSetting asks for a setting until it has a value, if it needs one.
func (o *onboarding) askSetting(ctx context.Context, s channel.Setting) (value string, err error) {
	if s.Help != "" {
		o.say(s.Help)
	}
	for {
		title := s.Title
		if !s.Required {
			title += " (may be empty)"
		}
		if s.Secret {
			value, err = o.secret(ctx, title+" (not shown)")
		} else {
			value, err = o.ask(ctx, title, "")
		}
		if err != nil || value != "" || !s.Required {
			return value, err
		}
	}
}

// jsonValue returns a value that a person wrote: JSON if it is that, else a text.
func jsonValue(text string) json.RawMessage {
	if t := strings.TrimSpace(text); json.Valid([]byte(t)) {
		return json.RawMessage(t)
	}
	b, _ := json.Marshal(text) // a string has no error
	return b
}

// tryChannel starts the chat app and waits until it is connected. With a person at the
// terminal, it then waits for their first message, and makes them the owner.
func (o *onboarding) tryChannel(ctx context.Context, name string) error {
	return o.withLink(ctx, func(l *link) error {
		if err := o.connected(ctx, l, name); err != nil {
			return err
		}
		o.good(name + " is connected")
		if o.quiet {
			return nil
		}
		return o.admitOwner(ctx, l, name)
	})
}

// connected waits until an account of a chat app works.
func (o *onboarding) connected(ctx context.Context, l *link, name string) error {
	within, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	for {
		var st wire.ChannelsStatus
		if err := l.Call(within, wire.MethodChannelsStatus,
			map[string]any{"channel": name, "probe": true, "timeoutMs": 10_000}, &st); err != nil {
			return err
		}
		for _, a := range st.Accounts[name] {
			switch {
			case a.ID != o.account:
			case a.Error != nil:
				return fmt.Errorf("%s does not work: %s", name, *a.Error)
			case a.Connected, a.Probe != nil && a.Probe.OK:
				return nil
			}
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-within.Done():
			if ctx.Err() != nil {
				return errInterrupted
			}
			return fmt.Errorf("%s did not connect within %s", name, connectWait)
		}
	}
}

// admitOwner waits for the first message. If the person at the terminal wrote it, it makes
// them the owner.
func (o *onboarding) admitOwner(ctx context.Context, l *link, name string) error {
	var known wire.Guests
	if err := l.Call(ctx, wire.MethodGuestList, wire.GuestsGet{Channel: name}, &known); err != nil {
		return err
	}
	if known.Owned || len(known.Guests) > 0 {
		return nil
	}
	fmt.Fprintf(o.stderr,
		"Now write to the assistant on %s, from your own account. It answers with a code. (Ctrl-C: later, with %s)\n", name,
		o.commandLine("pairing approve"))
	within, cancel := context.WithTimeout(ctx, writeWait)
	defer cancel()
	asked := map[string]bool{}
	for {
		var now wire.Guests
		if err := l.Call(within, wire.MethodGuestList, wire.GuestsGet{Channel: name}, &now); err != nil {
			return errInterrupted
		}
		for _, g := range now.Requests {
			if asked[g.Request] {
				continue
			}
			asked[g.Request] = true
			own, err := o.agree(ctx, fmt.Sprintf("%s (%s) got the code %s. Is that you", ansi.Line(g.Name), ansi.Line(g.ID),
				g.Request), true)
			if err != nil {
				return err
			}
			if !own {
				continue
			}
			var out wire.GuestDecided
			if err := l.Call(ctx, wire.MethodGuestApprove, wire.GuestRequest{
				Channel: name,
				Account: g.Account,
				Request: g.Request,
				Notify:  true,
				Owner:   true,
			}, &out); err != nil {
				return err
			}
			o.done.Owner = name + ":" + out.ID
			o.good(ansi.Line(g.Name) + " is the owner. Say something to it: it answers.")
			return nil
		}
		select {
		case <-time.After(time.Second):
		case <-within.Done():
			if ctx.Err() != nil {
				return errInterrupted
			}
			fmt.Fprintln(o.stderr, "Nobody has written. You can do it later: "+o.commandLine("pairing list"))
			return nil
		}
	}
}
