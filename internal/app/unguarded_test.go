package app

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/app/doctor"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/surface/cli"
)

func TestUnguarded(t *testing.T) {
	s := home(t, `{agents: {defaults: {model: "offline/assistant", skipBootstrap: true}}, tools: {message: {crossContext: {}}}, gateway: {auth: {token: "sk-canary", rateLimit: {maxAttempts: 3}}}}`)
	t.Run("the check reports each key", func(t *testing.T) {
		var got []string
		for _, f := range (doctor.Doctor{Registry: standard.New()}).Check(t.Context(), s) {
			if f.Name == "protection" && f.Status == cli.StatusWarn {
				got = append(got, f.Text)
			}
		}
		all := strings.Join(got, "\n")
		for _, want := range []string{"gateway.auth.rateLimit: has no effect",
			"tools.message: has no effect in this version: it does not keep any message from being sent"} {
			if !strings.Contains(all, want) {
				t.Errorf("%q is not reported:\n%s", want, all)
			}
		}
		if len(got) != 2 || strings.Contains(all, "canary") {
			t.Errorf("findings:\n%s", all)
		}
	})
	t.Run("the engine logs them once at its start", func(t *testing.T) {
		var log bytes.Buffer
		s.Log = slog.New(slog.NewTextHandler(&log, nil))
		begun(t, s)
		if n := strings.Count(log.String(), `keys="gateway.auth.rateLimit, tools.message"`); n != 1 ||
			strings.Contains(log.String(), "canary") {
			t.Errorf("logged %d times:\n%s", n, log.String())
		}
	})
	t.Run("nothing is logged when no such key is set", func(t *testing.T) {
		s := home(t, offlineConf)
		var log bytes.Buffer
		s.Log = slog.New(slog.NewTextHandler(&log, nil))
		begun(t, s)
		if strings.Contains(log.String(), "protect") {
			t.Errorf("log:\n%s", log.String())
		}
	})
}
