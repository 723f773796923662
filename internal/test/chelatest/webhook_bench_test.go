package chelatest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// BenchmarkWebhookFlood sends 10,000 requests over 64 connections to a gateway that
// answers none of them meanwhile. An operation is one flood.
func BenchmarkWebhookFlood(b *testing.B) {
	for b.Loop() {
		proceed := make(chan struct{})
		model := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { <-proceed; return llmtest.Say("NO_REPLY") })
		g := Start(b, Options{
			Model: model, Listen: &endpoint.Listen{Port: -1},
			Config: Config{"hooks": json.RawMessage(`{"enabled": true, "token": "` + hookToken + `"}`)},
		})
		hc := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
		began := time.Now()
		runs, statuses := flood(b, hc, "http"+strings.TrimPrefix(g.URL(), "ws")+"/hooks/agent", 10_000, 64)
		took := time.Since(began).Seconds()
		b.ReportMetric(10_000/took, "requests/s")
		b.ReportMetric(float64(len(runs)), "accepted")
		b.ReportMetric(float64(statuses[http.StatusTooManyRequests]), "refused")
		hc.CloseIdleConnections()
		close(proceed)
		g.Stop()
	}
}

// BenchmarkWebhookAccept accepts requests one after another and 64 at once, with runs that
// end at once.
func BenchmarkWebhookAccept(b *testing.B) {
	model := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return llmtest.Say("NO_REPLY") })
	g := Start(b, Options{
		Model: model, Listen: &endpoint.Listen{Port: -1},
		Config: Config{"hooks": json.RawMessage(`{"enabled": true, "token": "` + hookToken + `"}`)},
	})
	url := "http" + strings.TrimPrefix(g.URL(), "ws") + "/hooks/agent"
	hc := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.Cleanup(hc.CloseIdleConnections)
	accepted := 0
	for b.Loop() {
		runs, _ := flood(b, hc, url, 500, 64)
		accepted += len(runs)
	}
	b.ReportMetric(float64(accepted)/b.Elapsed().Seconds(), "accepted/s")
}
