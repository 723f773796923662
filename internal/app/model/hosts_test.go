package model

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/egress"
	"github.com/chela-ai/chela/internal/kit/waittest"
)

func TestHosts(t *testing.T) {
	t.Parallel()
	listen := func() *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
		}))
		t.Cleanup(s.Close)
		return s
	}
	configured, other := listen(), listen()
	try := func(conf, url string) error {
		t.Helper()
		var c Config
		if err := json.Unmarshal([]byte(conf), &c); err != nil {
			t.Fatal(err)
		}
		hc := egress.Client(egress.Options{Policy: egress.Policy{Hosts: c.Hosts()}, ConnectTimeout: waittest.Limit})
		res, err := hc.Get(url)
		if err == nil {
			_ = res.Body.Close()
		}
		return err
	}
	t.Run("PROV-20 the address of a provider in a private network is reachable, but no other port", func(t *testing.T) {
		conf := `{"providers": {"mine": {"baseUrl": "` + configured.URL + `/v1"}}}`
		if err := try(conf, configured.URL); err != nil {
			t.Error(err)
		}
		if no, ok := errors.AsType[*egress.Refused](try(conf, other.URL)); !ok {
			t.Errorf("another port: %v", no)
		}
		if err := try(strings.Replace(conf, `/v1"`, `/v1", "request": {"allowPrivateNetwork": true}`, 1),
			other.URL); err != nil {
			t.Errorf("another port, allowed: %v", err)
		}
	})
	t.Run("an address without a port has that of its scheme", func(t *testing.T) {
		c := Config{Providers: map[string]Provider{
			"a": {BaseURL: "http://10.0.0.5/v1"},
			"b": {BaseURL: "https://[fd00::1]/v1"},
			"c": {BaseURL: "nonsense"},
		}}
		got := c.Hosts()
		for _, want := range []string{"10.0.0.5:80", "[fd00::1]:443", "api.openai.com:443", "127.0.0.1:8000"} {
			if !slices.Contains(got, want) {
				t.Errorf("no %s in %v", want, got)
			}
		}
	})
}
