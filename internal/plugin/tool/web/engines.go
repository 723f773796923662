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

// askBrave returns a request to the Brave Search API.
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
		return nil, fmt.Errorf("response: %w", err)
	}
	var hits []hit
	for _, r := range a.Web.Results {
		hits = append(hits, hit{stripTags(r.Title), r.URL, stripTags(r.Description), cmp.Or(r.Age, r.PageAge),
			r.Profile.Name})
	}
	return hits, nil
}

// askTavily returns a request to the Tavily search API.
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

// parseResults parses a response with a list of results, as sent by Tavily and
// SearXNG.
func parseResults(body []byte) ([]hit, error) {
	var a struct {
		Results []struct {
			Title     string `json:"title"`
			URL       string `json:"url"`
			Content   string `json:"content"`
			Published string `json:"published_date"` // Tavily
			PubDate   string `json:"publishedDate"`  // SearXNG
		} `json:"results"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, fmt.Errorf("response: %w", err)
	}
	var hits []hit
	for _, r := range a.Results {
		hits = append(hits, hit{Title: r.Title, URL: r.URL, Snippet: r.Content, Published: cmp.Or(r.Published, r.PubDate)})
	}
	return hits, nil
}

// askSearXNG returns a request to a SearXNG instance with JSON output
// enabled.
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
	hits, err := parseResults(body)
	if err != nil {
		err = fmt.Errorf("%w (json must be listed in search.formats in the settings of the instance)", err)
	}
	return hits, err
}

// askDuckDuckGo returns a request for DuckDuckGo's result page without
// scripts. DuckDuckGo has no suitable API.
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
		return nil, fmt.Errorf("response: %w", err)
	}
	var hits []hit
	page := false
	for n := range doc.Descendants() {
		switch {
		case n.Type != html.ElementNode:
		case hasClass(n, "anomaly-modal"), attr(n, "id") == "challenge-form":
			return nil, errors.New("the service requires a CAPTCHA; try again later, or use a service with a key")
		case hasClass(n, "result__a"):
			if !insideClass(n, "result--ad") {
				hits = append(hits, hit{Title: textOf(n), URL: target(attr(n, "href"))})
			}
		case hasClass(n, "result__snippet"):
			if len(hits) > 0 && !insideClass(n, "result--ad") {
				hits[len(hits)-1].Snippet = textOf(n)
			}
		}
		page = page || attr(n, "id") == "links" || hasClass(n, "no-results")
	}
	if len(hits) == 0 && !page {
		return nil, errors.New("the response is not a result page")
	}
	return hits, nil
}

// target returns the URL that a link on the result page leads to.
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

// hasClass reports whether an element has a class.
func hasClass(n *html.Node, class string) bool {
	return strings.Contains(" "+attr(n, "class")+" ", " "+class+" ")
}

// insideClass reports whether an element is inside an element of a class.
func insideClass(n *html.Node, class string) bool {
	for p := range n.Ancestors() {
		if hasClass(p, class) {
			return true
		}
	}
	return false
}

// textOf returns the text of an element.
func textOf(n *html.Node) string {
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
