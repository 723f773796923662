package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/engine/webhook"
	"github.com/chela-ai/chela/internal/kit/cert"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

func (c *commands) webhooks() *cobra.Command {
	cmd := group("webhooks", "Let other programs give the assistant work over HTTP",
		c.webhooksStatus(), c.webhooksEnable(), c.webhooksDisable(), c.webhooksToken(), c.webhooksTest())
	status := c.webhooksStatus()
	cmd.RunE = status.RunE
	return c.withJSON(here(cmd))
}

// webhookState is what `chela webhooks status` shows.
type webhookState struct {
	Enabled  bool             `json:"enabled"`
	URL      string           `json:"url"`             // of the webhooks
	Token    string           `json:"token,omitempty"` // where it comes from: configuration, env:NAME, file:PATH
	Mappings []webhookMapping `json:"mappings"`
	Curl     string           `json:"curl,omitempty"` // an example request
	Problem  string           `json:"problem,omitempty"`
}

// webhookMapping is a mapping in a list.
type webhookMapping struct {
	Name      string `json:"name"` // below the path
	Source    string `json:"source,omitempty"`
	Action    string `json:"action"`
	Signature string `json:"signature,omitempty"` // how requests are authenticated; empty: by the token
	Transform string `json:"transform,omitempty"`
	To        string `json:"to,omitempty"` // where answers go
}

func (c *commands) webhooksStatus() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use: "status", Short: "Show whether webhooks are accepted, their mappings, and an example request", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			st, err := c.webhookState(cmd.Context())
			if err != nil {
				return err
			}
			return c.print(st, func() { c.printWebhooks(st) })
		},
	})
}

// webhookState returns the configured webhooks.
func (c *commands) webhookState(ctx context.Context) (webhookState, error) {
	st := webhookState{Mappings: []webhookMapping{}}
	s, err := c.start()
	if err != nil {
		return st, err
	}
	var conf webhook.Config
	raw, err := c.section("hooks")
	if err == nil && raw != nil {
		err = json.Unmarshal(raw, &conf)
	}
	if err != nil {
		return st, err
	}
	h, err := c.app.Webhooks(s)
	if err != nil {
		st.Problem = err.Error()
		return st, nil
	}
	p, err := c.port(ctx, s)
	if err != nil {
		return st, err
	}
	st.Enabled, st.URL = h.Enabled(), "http"+strings.TrimPrefix(p.URL, "ws")+h.Path()
	if !st.Enabled {
		return st, nil
	}
	for _, m := range h.Mappings() {
		w := webhookMapping{Name: cmp.Or(m.Match.Path, "*"), Source: m.Match.Source, Action: string(m.Action),
			Signature: string(m.Signature)}
		if m.Transform != nil {
			w.Transform = m.Transform.Module
		}
		if m.Channel != "" {
			w.To = strings.TrimSuffix(m.Channel+":"+string(m.To), ":")
		}
		st.Mappings = append(st.Mappings, w)
	}
	st.Token = conf.Token.String()
	value := "$(" + c.commandLine("webhooks token") + ")"
	switch conf.Token.Source {
	case secret.Env:
		value = "$" + conf.Token.ID
	case secret.File:
		value = "$(cat " + shell.Quote(conf.Token.ID) + ")"
	case secret.Plain:
		st.Token = "in the configuration"
	}
	st.Curl = fmt.Sprintf(`curl -X POST %s/agent -H "Authorization: Bearer %s" -H 'Content-Type: application/json' -d '{"message": "Say hello."}'`, st.URL, value)
	return st, nil
}

func (c *commands) printWebhooks(st webhookState) {
	switch {
	case st.Problem != "":
		c.printRow("webhooks", "off: "+st.Problem)
		return
	case !st.Enabled:
		c.printRow("webhooks", "off")
		c.printHint(c.commandLine("webhooks enable"))
		return
	}
	c.printRow("webhooks", "on")
	c.printRow("url", st.URL)
	c.printRow("token", st.Token)
	fmt.Fprintln(c.stdout)
	rows := [][]string{{"NAME", "SOURCE", "ACTION", "AUTHENTICATION", "ANSWER"}, {"wake", "", "wake", "token", ""},
		{"agent", "", "agent", "token", ""}}
	for _, m := range st.Mappings {
		auth := "token"
		if m.Signature != "" {
			auth = "signature (" + m.Signature + ")"
		}
		rows = append(rows, []string{ansi.Line(m.Name), ansi.Line(m.Source), m.Action, auth, ansi.Line(m.To)})
	}
	c.printTable(rows)
	fmt.Fprintln(c.stdout, "\n"+st.Curl)
}

func (c *commands) webhooksEnable() *cobra.Command {
	var rotate bool
	cmd := &cobra.Command{
		Use: "enable", Short: "Accept webhooks; generate a token if there is none", Args: exactly(0),
		Long: "Accept webhooks on the port of the gateway. If the configuration has no token of\nwebhooks, one is generated and written to it. `chela webhooks token` prints it.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := c.changeBy(cmd.Context(), func(section func(string) json.RawMessage) ([]config.Edit, error) {
				edits := []config.Edit{{Path: "hooks.enabled", Value: json.RawMessage("true")}}
				if token := section("hooks.token"); rotate || token == nil || string(token) == `""` {
					b := make([]byte, 24)
					_, _ = rand.Read(b) // never fails
					edits = append(edits, config.Edit{Path: "hooks.token", Value: json.RawMessage(`"` + hex.EncodeToString(b) + `"`)})
				}
				return edits, nil
			})
			if err != nil {
				return err
			}
			st, err := c.webhookState(cmd.Context())
			if err != nil {
				return err
			}
			return c.print(st, func() { fmt.Fprintln(c.stdout, st.Curl) })
		},
	}
	cmd.Flags().BoolVar(&rotate, "rotate", false, "generate a new token; the old one is not accepted any more")
	return c.withJSON(cmd)
}

func (c *commands) webhooksDisable() *cobra.Command {
	return &cobra.Command{Use: "disable", Short: "Accept no webhooks; the token and the mappings are kept",
		Args: exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
			return c.change(cmd.Context(), config.Edit{Path: "hooks.enabled", Value: json.RawMessage("false")})
		}}
}

func (c *commands) webhooksToken() *cobra.Command {
	return &cobra.Command{Use: "token", Short: "Print the token of webhooks", Args: exactly(0),
		RunE: func(*cobra.Command, []string) error {
			h, err := c.enabledWebhooks()
			if err != nil {
				return err
			}
			fmt.Fprintln(c.stdout, h.Token().Reveal())
			return nil
		}}
}

// enabledWebhooks returns the configured webhooks, or an error if they are off.
func (c *commands) enabledWebhooks() (*webhook.Hooks, error) {
	s, err := c.start()
	if err != nil {
		return nil, err
	}
	h, err := c.app.Webhooks(s)
	if err == nil && !h.Enabled() {
		err = c.suggest(errors.New("webhooks are off"), "webhooks enable")
	}
	return h, err
}

// maxTestBody is the maximum size of the payload of a test in bytes.
const maxTestBody = 4 << 20

// webhookTested is the result of `chela webhooks test`.
type webhookTested struct {
	URL    string          `json:"url"`
	Status int             `json:"status"`
	Answer json.RawMessage `json:"answer"`
}

func (c *commands) webhooksTest() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use: "test [NAME]", Short: "Send a request to the running gateway", Args: between(0, 1),
		Long: "Send a request to the running gateway, with the token, or signed as the mapping\n" +
			"demands. Without a NAME, a line of text is sent that the main session reads in its\nnext turn; it starts nothing.",
		Example: "  chela webhooks test\n  chela webhooks test agent --data '{\"message\": \"Say hello.\"}'\n  chela webhooks test gmail --data - < mail.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "wake"
			if len(args) > 0 {
				name = strings.Trim(args[0], "/")
			}
			body := []byte(data)
			switch {
			case data == "-":
				var err error
				if body, err = io.ReadAll(io.LimitReader(c.stdin, maxTestBody)); err != nil {
					return err
				}
			case data == "" && name == "wake":
				body = []byte(`{"text": "A test of the webhooks.", "mode": "next-heartbeat"}`)
			case data == "":
				return usage(withHint(errors.New("--data is missing"), c.commandLine("webhooks test "+name+" --data '{…}'")))
			}
			return c.testWebhook(cmd.Context(), name, body)
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "the payload, as `JSON`; - reads it from standard input")
	return c.withJSON(cmd)
}

// testWebhook sends a request to the running gateway and prints its answer.
func (c *commands) testWebhook(ctx context.Context, name string, body []byte) error {
	h, err := c.enabledWebhooks()
	if err != nil {
		return err
	}
	s, err := c.start()
	if err != nil {
		return err
	}
	p, err := c.port(ctx, s)
	if err != nil {
		return err
	}
	out := webhookTested{URL: "http" + strings.TrimPrefix(p.URL, "ws") + h.Path() + "/" + name}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, out.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range h.Authenticate(name, body, time.Now()) {
		req.Header.Set(k, v)
	}
	t := &http.Transport{DisableKeepAlives: true}
	if p.Fingerprint != "" {
		t.TLSClientConfig = cert.Pinned(p.Fingerprint)
	}
	res, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		return c.suggest(fmt.Errorf("the gateway does not answer: %w", err), "gateway run")
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxTestBody))
	if err != nil {
		return err
	}
	if out.Status = res.StatusCode; json.Valid(b) {
		out.Answer = b
	}
	if err := c.print(out, func() {
		c.printRow("url", out.URL)
		c.printRow("status", res.Status)
		c.printRow("answer", strings.TrimSpace(string(b)))
	}); err != nil {
		return err
	}
	if res.StatusCode >= http.StatusBadRequest {
		return errReported
	}
	return nil
}
