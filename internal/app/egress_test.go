package app

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chela-ai/chela/internal/settings"
)

func TestModelClient(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	for config, reached := range map[string]bool{
		`{}`: false, `{"providers": {"mine": {"baseUrl": "` + s.URL + `/v1"}}}`: true, `{"providers": {"mine": {"baseUrl": "http://127.0.0.1:1/v1"}}}`: false,
	} {
		opts, err := settings.Read(conf{"models": config})
		if err != nil {
			t.Fatal(err)
		}
		c := modelClient(&opts, func(string) string { return "" })
		resp, err := c.Get(s.URL)
		if (err == nil) != reached {
			t.Errorf("%s: %v", config, err)
		}
		if err == nil {
			resp.Body.Close()
		}
		c.CloseIdleConnections()
	}
}
