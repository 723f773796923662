package model

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestHTTPClient(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	for config, reached := range map[string]bool{
		`{}`: false, `{"providers": {"mine": {"baseUrl": "` + s.URL + `/v1"}}}`: true,
		`{"providers": {"mine": {"baseUrl": "http://127.0.0.1:1/v1"}}}`: false,
	} {
		var o Config
		if err := json.Unmarshal([]byte(config), &o); err != nil {
			t.Fatal(err)
		}
		c := HTTPClient(o, func(string) string { return "" })
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
