package slacktest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestStrict checks that the fake refuses what Slack refuses.
func TestStrict(t *testing.T) {
	t.Parallel()
	s := New(t)
	hc := s.Pipe()
	call := func(token, method string, params ...string) string {
		t.Helper()
		v := url.Values{}
		for i := 0; i < len(params); i += 2 {
			v.Set(params[i], params[i+1])
		}
		r, err := http.NewRequest(http.MethodPost, s.Root()+"/"+method, strings.NewReader(v.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := hc.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var out struct{ Error string }
		if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
			t.Fatal(err)
		}
		return out.Error
	}
	theirs := s.Write("C1", "", "U1", "hello")
	for _, c := range []struct {
		want, token, method string
		params              []string
	}{
		{"not_authed", "", "auth.test", nil},
		{"invalid_auth", "xoxb-other", "auth.test", nil},
		{"invalid_auth", AppToken, "auth.test", nil},
		{"invalid_auth", BotToken, "apps.connections.open", nil},
		{"unknown_method", BotToken, "chat.shout", nil},
		{"invalid_arguments", BotToken, "chat.update", []string{"channel", "C1"}},
		{"channel_not_found", BotToken, "chat.postMessage", []string{"channel", "C404", "text", "x"}},
		{"not_in_channel", BotToken, "chat.postMessage", []string{"channel", "C9", "text", "x"}},
		{"no_text", BotToken, "chat.postMessage", []string{"channel", "C1"}},
		{"msg_too_long", BotToken, "chat.postMessage", []string{"channel", "C1", "text", strings.Repeat("x", 40001)}},
		{"thread_not_found", BotToken, "chat.postMessage", []string{"channel", "C1", "text", "x", "thread_ts", "1.5"}},
		{"invalid_blocks", BotToken, "chat.postMessage", []string{"channel", "C1", "text", "x", "unfurl_links", "false",
			"parse", "none", "blocks", `[{"type":"section","text":{"type":"mrkdwn","text":""}}]`}},
		{"invalid_blocks", BotToken, "chat.postMessage", []string{"channel", "C1", "text", "x", "unfurl_links", "false",
			"parse", "none", "blocks", `[{"type":"actions","elements":[{"type":"button"}]}]`}},
		{"invalid_metadata_format", BotToken, "chat.postMessage",
			[]string{"channel", "C1", "text", "x", "unfurl_links", "false", "parse", "none", "metadata", "{"}},
		{"cant_update_message", BotToken, "chat.update", []string{"channel", "C1", "ts", theirs, "text", "x"}},
		{"cant_delete_message", BotToken, "chat.delete", []string{"channel", "C1", "ts", theirs}},
		{"message_not_found", BotToken, "reactions.add", []string{"channel", "C1", "timestamp", "1.5", "name", "eyes"}},
		{"no_reaction", BotToken, "reactions.remove", []string{"channel", "C1", "timestamp", theirs, "name", "eyes"}},
		{"user_not_found", BotToken, "conversations.open", []string{"users", "U404"}},
		{"file_not_found", BotToken, "files.completeUploadExternal", []string{"channel_id", "C1", "files", `[{"id":"F1"}]`}},
		{"", BotToken, "chat.postMessage", []string{"channel", "C1", "text", "x", "unfurl_links", "false", "parse", "none"}},
	} {
		if got := call(c.token, c.method, c.params...); got != c.want {
			t.Errorf("%s %q: %q, want %q", c.method, c.params, got, c.want)
		}
	}
	res, err := hc.Get(strings.TrimSuffix(s.Root(), "/api") + "/link?ticket=t1")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("a socket without a ticket: %s", res.Status)
	}
}
