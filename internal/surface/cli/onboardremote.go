package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/chela-ai/chela/internal/core/config"
)

// remoteFlags are the flags of `chela onboard` about a gateway on another machine.
type remoteFlags struct {
	url, token, password, pin string
	ssh, key                  string
	port                      int
}

func (r *remoteFlags) add(f *pflag.FlagSet) {
	f.StringVar(&r.url, "remote-url", "", "for --mode remote: `URL` of the gateway, such as wss://HOST:18789")
	f.StringVar(&r.token, "remote-token", "", "its `TOKEN`, or env:NAME or file:PATH")
	f.StringVar(&r.password, "remote-password", "", "its `PASSWORD`, or env:NAME or file:PATH")
	f.StringVar(&r.pin, "remote-tls-fingerprint", "", "trust only the certificate with this `SHA-256` fingerprint")
	f.StringVar(&r.ssh, "remote-ssh", "",
		"connect through SSH to `USER@HOST`, where the gateway listens for its own machine only")
	f.StringVar(&r.key, "remote-ssh-identity", "", "`FILE` of the SSH key")
	f.IntVar(&r.port, "remote-port", 0, "`PORT` of the gateway, through SSH (default 18789)")
}

// chooseMode sets the mode of the gateway that the flags name. It reports whether nothing else
// is to be done.
func (o *onboarding) chooseMode(ctx context.Context) (done bool, err error) {
	o.repairs = true
	s, err := o.start()
	if err != nil {
		return false, err
	}
	switch o.mode {
	case "remote":
		return true, o.useRemote(ctx)
	case "local":
		if o.far != (remoteFlags{}) {
			return true, usage(errors.New("the flags --remote-… need --mode remote"))
		}
		if away, err := o.isAway(); err == nil && !away {
			return false, nil
		}
		return false, o.silently(func() error { return o.change(ctx, config.Edit{Path: "gateway.mode"}) })
	case "":
		if o.far != (remoteFlags{}) {
			return true, usage(errors.New("the flags --remote-… need --mode remote"))
		}
		switch other, err := o.remote(s); {
		case err != nil:
			return true, err
		case other != nil:
			return true, o.suggest(fmt.Errorf("gateway.mode is remote: this machine uses the gateway at %s",
				(&away{r: other}).name()), "onboard --mode local")
		}
		return false, nil
	}
	return true, usage(fmt.Errorf("--mode: want local or remote, not %q", o.mode))
}

// useRemote has the commands use the gateway on another machine, after it has tried it. It
// changes nothing but that.
func (o *onboarding) useRemote(ctx context.Context) error {
	if o.far.url == "" && o.far.ssh == "" {
		return usage(o.suggest(errors.New("--mode remote needs --remote-url or --remote-ssh"),
			"onboard --mode remote --remote-url wss://HOST:18789 --remote-token TOKEN"))
	}
	s, err := o.start()
	if err != nil {
		return err
	}
	var waits error
	name := ""
	if !o.skip.check {
		switch name, err = o.tryRemote(ctx, s); {
		case errors.Is(err, errNotPaired):
			waits = err
		case err != nil:
			return err
		}
	}
	err = o.changeBy(ctx, func(section func(string) json.RawMessage) ([]config.Edit, error) {
		edits := []config.Edit{setting("remote", "gateway", "mode")}
		for _, v := range o.far.values() {
			path := "gateway.remote." + v.name
			switch old := section(path); {
			case v.set:
				edits = append(edits, setting(v.value, "gateway", "remote", v.name))
			case old != nil: // of another gateway
				edits = append(edits, config.Edit{Path: path})
			}
		}
		return edits, nil
	})
	switch {
	case err != nil:
		return err
	case waits != nil:
		return waits
	}
	if o.json {
		return o.printJSON(map[string]any{
			"mode":    "remote",
			"gateway": name,
			"checked": name != "",
			"config":  s.Config,
			"next":    o.commandLine("chat"),
		})
	}
	if name != "" {
		o.good("the gateway at " + name + " answers")
	}
	if _, err := o.app.Attach(ctx, s); err == nil {
		fmt.Fprintln(o.stderr, "A gateway still runs on this machine, which the commands do not use any more; to stop it: "+
			o.commandLine("gateway stop")+", or Ctrl-C in its terminal")
	}
	fmt.Fprintln(o.stderr, "next: "+o.commandLine("chat"))
	return nil
}

// remoteValue is a key below gateway.remote.
type remoteValue struct {
	name  string
	value any
	set   bool
}

// values returns the keys below gateway.remote that the flags stand for.
func (r *remoteFlags) values() []remoteValue {
	transport := "direct"
	if r.ssh != "" {
		transport = "ssh"
	}
	return []remoteValue{
		{"transport", transport, true}, {"url", r.url, r.url != ""}, {"token", r.token, r.token != ""},
		{"password", r.password, r.password != ""},
		{"tlsFingerprint", r.pin, r.pin != ""}, {"sshTarget", r.ssh, r.ssh != ""}, {"sshIdentity", r.key, r.key != ""},
		{"remotePort", r.port, r.port != 0},
	}
}

// tryRemote connects to the gateway of the flags, and returns its name for people.
func (o *onboarding) tryRemote(ctx context.Context, s Start) (string, error) {
	dir, err := os.MkdirTemp("", "chela-onboard-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	remote := map[string]any{}
	for _, v := range o.far.values() {
		if v.set {
			remote[v.name] = v.value
		}
	}
	b, err := json.Marshal(map[string]any{"gateway": map[string]any{"mode": "remote", "remote": remote}})
	if err != nil {
		return "", err
	}
	trial := s
	trial.Config, trial.LastGood = filepath.Join(dir, "chela.json"), filepath.Join(dir, "last-good.json")
	if err := os.WriteFile(trial.Config, b, 0o600); err != nil {
		return "", err
	}
	r, err := o.app.Remote(trial)
	if err != nil {
		return "", err
	}
	e, err := o.reach(s, r)
	if err != nil {
		return "", err
	}
	e.trial = true
	l, err := o.dial(ctx, e)
	if err != nil {
		return "", err
	}
	return e.name(), l.Close()
}
