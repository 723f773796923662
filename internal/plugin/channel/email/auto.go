package email

import (
	"strings"
)

// automatic returns why a mail is one of a program, which is never answered; "": it is
// not.
func automatic(h header) string {
	for _, v := range h.all("auto-submitted") {
		kind, _, _ := strings.Cut(v, ";")
		if kind = strings.TrimSpace(kind); !strings.EqualFold(kind, "no") {
			return "Auto-Submitted: " + clip(kind)
		}
	}
	for _, v := range h.all("precedence") {
		switch strings.ToLower(v) {
		case "bulk", "list", "junk", "auto_reply":
			return "Precedence: " + strings.ToLower(v)
		}
	}
	for _, key := range []string{"list-id", "list-unsubscribe", "list-post", "x-autoreply", "x-autorespond",
		"x-auto-response-suppress", "x-failed-recipients"} {
		if h.has(key) {
			return key
		}
	}
	for _, v := range h.all("return-path") {
		if v = strings.TrimSpace(v); v == "<>" || v == "" {
			return "an empty Return-Path"
		}
	}
	kind, _, _ := strings.Cut(strings.ToLower(h.get("content-type")), ";")
	if strings.TrimSpace(kind) == "multipart/report" {
		return "a report"
	}
	return ""
}

// mechanical reports whether nobody reads what is sent to an address.
func mechanical(address string) bool {
	local, _, _ := strings.Cut(address, "@")
	switch strings.NewReplacer("-", "", "_", "", ".", "").Replace(local) {
	case "mailerdaemon", "postmaster", "noreply", "donotreply", "bounce", "bounces":
		return true
	}
	return false
}
