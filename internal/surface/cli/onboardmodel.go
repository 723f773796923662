package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/wire"
)

// The choices of --auth-choice besides the providers.
const (
	authCustom  = "custom"  // a server with OpenAI's protocol
	authOffline = "offline" // the built-in assistant
	authKeep    = "keep"
)

// customProvider is the name of the provider of a server that the person names.
const customProvider = "custom"

// stepModel chooses the model, and tries it before anything is written.
func (o *onboarding) stepModel(ctx context.Context) error {
	o.title("The model")
	now, err := o.status(ctx)
	if err != nil {
		return err
	}
	configured, _, err := o.configuredModel()
	if err != nil {
		return err
	}
	o.done.Model, o.done.Why = strings.Trim(now.Provider+"/"+now.Model, "/"), now.Reason
	for first := true; !o.quiet; first = false {
		if !first || o.auth == "" && !o.skip.model { // a flag answers it the first time
			if err := o.askModel(ctx, configured != "" || !offline(now)); err != nil {
				return err
			}
		}
		err := o.setUpModel(ctx)
		if err == nil || errors.Is(err, errInterrupted) || ctx.Err() != nil {
			return err
		}
		o.report(err, "")
		o.auth, o.key, o.model = "", "", ""
	}
	return o.setUpModel(ctx)
}

// setUpModel tries and saves the model that was chosen.
func (o *onboarding) setUpModel(ctx context.Context) error {
	if o.skip.model || o.auth == authKeep || o.auth == "" && o.quiet {
		o.good("model " + o.done.Model + reason(o.done.Why))
		return nil
	}
	edits, provider, key, err := o.modelEdits()
	if err != nil {
		return err
	}
	if o.auth != authOffline && !o.skip.check {
		if err := o.tryModel(ctx, provider, key, edits); err != nil {
			return err
		}
		o.done.Checked = true
	}
	if key != "" {
		s, err := o.start()
		if err == nil {
			err = o.app.SaveKey(s, provider, "", key)
		}
		if err != nil {
			return fmt.Errorf("key: %w", err)
		}
	}
	if err := o.change(ctx, edits...); err != nil {
		return err
	}
	now, err := o.status(ctx)
	if err != nil {
		return err
	}
	o.done.Model, o.done.Why = strings.Trim(now.Provider+"/"+now.Model, "/"), now.Reason
	o.good("model " + o.done.Model)
	return nil
}

func reason(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

// askModel asks which model is used. found is set if there is one.
func (o *onboarding) askModel(ctx context.Context, found bool) error {
	var options []string
	var choices []string
	add := func(choice, text string) { options, choices = append(options, text), append(choices, choice) }
	if found {
		add(authKeep, o.done.Model+reason(o.done.Why))
	}
	add("", "an API key of Anthropic, OpenAI, OpenRouter, Google, Groq or xAI")
	add(authCustom, "a server with OpenAI's protocol, such as llama.cpp, vLLM or LM Studio")
	add(authOffline, "no model: the built-in assistant, which only knows a few commands")
	i, err := o.choose(ctx, options)
	if err != nil {
		return err
	}
	switch o.auth = choices[i]; o.auth {
	case "":
		for o.auth == "" {
			if o.key, err = o.secret(ctx, "API key (not shown)"); err != nil {
				return err
			}
			if o.auth = providerOf(o.key); o.auth == "" {
				fmt.Fprintln(o.stderr, "this is not a key of one of these providers; for others: "+
					o.commandLine("models auth PROVIDER"))
			}
		}
	case authCustom:
		if o.baseURL, err = o.ask(ctx, "Address of the server", "http://127.0.0.1:8080/v1"); err != nil {
			return err
		}
		for o.model == "" {
			if o.model, err = o.ask(ctx, "Name of the model there", ""); err != nil {
				return err
			}
		}
		if o.key, err = o.secret(ctx, "API key (empty: none)"); err != nil {
			return err
		}
	}
	return nil
}

// modelEdits returns the changes for the chosen model, and the key to be saved beside the
// configuration; "": none.
func (o *onboarding) modelEdits() (edits []config.Edit, provider, key string, err error) {
	ref := secret.ParseRef(o.key)
	switch o.refs {
	case "ref":
		if o.key != "" && ref.Source == secret.Plain {
			return nil, "", "", usage(errors.New("--secret-input-mode ref: --api-key has to be env:NAME or file:PATH"))
		}
	case "plaintext":
	default:
		return nil, "", "", usage(fmt.Errorf("--secret-input-mode is %q; want plaintext or ref", o.refs))
	}
	if provider = o.auth; o.auth == authOffline {
		return []config.Edit{setting("offline/assistant", "agents", "defaults", "model")}, "", "", nil
	}
	if o.auth == authCustom {
		provider = customProvider
		if o.baseURL == "" || o.model == "" {
			return nil, "", "", usage(errors.New("--auth-choice custom needs --custom-base-url and --custom-model"))
		}
		edits = append(edits, setting(o.baseURL, "models", "providers", provider, "baseUrl"),
			setting([]map[string]string{{"id": o.model, "name": o.model}}, "models", "providers", provider, "models"))
	} else if err := o.checkProvider(provider); err != nil {
		return nil, "", "", err
	}
	switch {
	case o.key == "":
	case ref.Source != secret.Plain:
		edits = append(edits, setting(o.key, "models", "providers", provider, "apiKey"))
	default:
		key = o.key
	}
	if o.model != "" {
		edits = append(edits, setting(provider+"/"+o.model, "agents", "defaults", "model"))
	}
	return edits, provider, key, nil
}

// tryModel asks a model for an answer, in an installation that exists only for that, so
// that nothing is saved that does not work.
func (o *onboarding) tryModel(ctx context.Context, provider, key string, edits []config.Edit) error {
	t, err := o.tree()
	if err != nil {
		return err
	}
	text := []byte("{}")
	if raw := t.Section("models"); raw != nil {
		text = append(append([]byte(`{"models":`), raw...), '}')
	}
	if text, err = config.Edited(text, edits...); err != nil {
		return err
	}
	var out wire.ModelsProbed
	prepare := func(s Start) error {
		if key == "" {
			return nil
		}
		return o.app.SaveKey(s, provider, "", key)
	}
	err = o.withTemporary(ctx, text, prepare, func(call func(string, any, any) error) error {
		return call(wire.MethodModelsProbe, wire.ModelsProbe{Provider: provider}, &out)
	})
	if err != nil {
		return fmt.Errorf("try the model: %w", err)
	}
	if why := refusedBy(out); why != "" {
		return o.suggest(fmt.Errorf("%s: %s; nothing was saved", provider, why), "onboard")
	}
	return nil
}

// refusedBy says why a model did not answer a test request; "": it did.
func refusedBy(out wire.ModelsProbed) string {
	if out.Status == wire.ProbeOK {
		return ""
	}
	why := out.Error
	for _, r := range out.Results {
		why = cmp.Or(r.Error, why)
	}
	if len(out.Results) == 0 {
		why = cmp.Or(why, "there is no key for it")
	}
	advice := map[string]string{
		wire.ProbeAuth:    "the key was refused",
		wire.ProbeBilling: "the account has no credit",
		wire.ProbeRate:    "too many requests; try again later",
		wire.ProbeTimeout: "the server does not answer",
		wire.ProbeNoModel: "the server does not have this model",
	}[out.Status]
	return cmp.Or(advice, "it did not answer") + ": " + why
}
