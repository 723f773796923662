package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/html"
)

// askBrave asks the Brave Search API.
func askBrave(ctx context.Context, base, key string, q query) (*http.Request, error) {
	v := url.Values{"q": {q.Query}, "count": {strconv.Itoa(q.Count)}}
	set(v, "country", strings.ToUpper(q.Country))
	set(v, "search_lang", strings.ToLower(q.language()))
	set(v, "ui_lang", q.UI)
	switch {
	case q.After != "" || q.Before != "":
		v.Set("freshness", cmp.Or(q.After, "1970-01-01")+"to"+cmp.Or(q.Before, today()))
	case q.Freshness != "":
		v.Set("freshness", "p"+q.Freshness[:1])
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/res/v1/web/search?"+v.Encode(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("X-Subscription-Token", key)
	return r, nil
}

func parseBrave(body []byte) ([]hit, error) {
	var a struct {
		Web struct {
			Results []struct {
				Title       string `json:"title"`
				URL         string `json:"url"`
				Description string `json:"description"`
				Age         string `json:"age"`
				PageAge     string `json:"page_age"`
				Profile     struct {
					Name string `json:"name"`
				} `json:"profile"`
			} `json:"results"`
		} `json:"web"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	var hits []hit
	for _, r := range a.Web.Results {
		hits = append(hits, hit{unmarked(r.Title), r.URL, unmarked(r.Description), cmp.Or(r.Age, r.PageAge), r.Profile.Name})
	}
	return hits, nil
}

// askTavily asks the Tavily search API.
func askTavily(ctx context.Context, base, key string, q query) (*http.Request, error) {
	body, err := json.Marshal(struct {
		Query      string `json:"query"`
		MaxResults int    `json:"max_results"`
		Range      string `json:"time_range,omitempty"`
		After      string `json:"start_date,omitempty"`
		Before     string `json:"end_date,omitempty"`
	}{q.Query, q.Count, q.Freshness, q.After, q.Before})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/search", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	return r, nil
}

func parseTavily(body []byte) ([]hit, error) {
	var a struct {
		Results []struct {
			Title     string `json:"title"`
			URL       string `json:"url"`
			Content   string `json:"content"`
			Published string `json:"published_date"`
		} `json:"results"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	var hits []hit
	for _, r := range a.Results {
		hits = append(hits, hit{Title: r.Title, URL: r.URL, Snippet: r.Content, Published: r.Published})
	}
	return hits, nil
}

// askSearXNG asks a SearXNG instance whose JSON output is enabled.
func askSearXNG(ctx context.Context, base, _ string, q query) (*http.Request, error) {
	v := url.Values{"q": {q.Query}, "format": {"json"}}
	set(v, "language", q.language())
	set(v, "time_range", q.Freshness)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/search?"+v.Encode(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	return r, nil
}

func parseSearXNG(body []byte) ([]hit, error) {
	var a struct {
		Results []struct {
			Title     string `json:"title"`
			URL       string `json:"url"`
			Content   string `json:"content"`
			Published string `json:"publishedDate"`
		} `json:"results"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, fmt.Errorf("answer: %w: is json among search.formats in the instance's settings?", err)
	}
	var hits []hit
	for _, r := range a.Results {
		hits = append(hits, hit{Title: r.Title, URL: r.URL, Snippet: r.Content, Published: r.Published})
	}
	return hits, nil
}

// askDuckDuckGo asks for the page of results that needs no scripts. There is no
// API of which this would be a use.
func askDuckDuckGo(ctx context.Context, base, _ string, q query) (*http.Request, error) {
	v := url.Values{"q": {q.Query}}
	if q.Country != "" {
		v.Set("kl", strings.ToLower(q.Country)+"-"+strings.ToLower(cmp.Or(q.language(), "en")))
	}
	switch {
	case q.After != "" || q.Before != "":
		v.Set("df", cmp.Or(q.After, "1970-01-01")+".."+cmp.Or(q.Before, today()))
	case q.Freshness != "":
		v.Set("df", q.Freshness[:1])
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/html/?"+v.Encode(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Accept-Language", language)
	return r, nil
}

func parseDuckDuckGo(body []byte) ([]hit, error) {
	doc, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	var hits []hit
	page := false
	for n := range doc.Descendants() {
		switch {
		case n.Type != html.ElementNode:
		case has(n, "anomaly-modal"), attr(n, "id") == "challenge-form":
			return nil, errors.New("the service asks whether a person is searching; try again later, or use a service with a key")
		case has(n, "result__a"):
			if !within(n, "result--ad") {
				hits = append(hits, hit{Title: words(n), URL: target(attr(n, "href"))})
			}
		case has(n, "result__snippet"):
			if len(hits) > 0 && !within(n, "result--ad") {
				hits[len(hits)-1].Snippet = words(n)
			}
		}
		page = page || attr(n, "id") == "links" || has(n, "no-results")
	}
	if len(hits) == 0 && !page {
		return nil, errors.New("the answer is no page of results")
	}
	return hits, nil
}

// target returns where a link of the page of results leads.
func target(href string) string {
	if u, err := url.Parse(href); err == nil {
		if to := u.Query().Get("uddg"); to != "" {
			return to
		}
	}
	if strings.HasPrefix(href, "//") {
		return "https:" + href
	}
	return href
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// has reports whether an element is of a class.
func has(n *html.Node, class string) bool {
	return strings.Contains(" "+attr(n, "class")+" ", " "+class+" ")
}

// within reports whether an element stands in one of a class.
func within(n *html.Node, class string) bool {
	for p := range n.Ancestors() {
		if has(p, class) {
			return true
		}
	}
	return false
}

// words returns the text of an element.
func words(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

func set(v url.Values, key, value string) {
	if value != "" {
		v.Set(key, value)
	}
}

func today() string { return time.Now().UTC().Format(time.DateOnly) }
