package canvas

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const text = `{"id":"root","component":"Text","text":"x"}`
	for _, tt := range []struct{ lines, err string }{
		{`{"beginRendering":{"surfaceId":"a","root":"r"}}`, ""},
		{"\ufeff\r\n" + `{"deleteSurface":{"surfaceId":"a"}}` + "\r\n\r\n", ""},
		{`{"version":"v0.8","dataModelUpdate":{"surfaceId":"a","contents":[{"key":"x","valueNumber":1}]}}`, ""},
		{`{"version":"v0.9","createSurface":{"surfaceId":"a","catalogId":"c"}}`, ""},
		{`{"version":"v0.9.1","updateDataModel":{"surfaceId":"a","path":"/x"}}`, ""},
		{`{"version":"1.0","updateComponents":{"surfaceId":"a","components":[` + text + `]}}`, ""},
		{`{"version":"v1.0","updateDataModel":{"surfaceId":"a","value":[1,{"x":null}]}}`, ""},
		{`{"updateComponents":{"surfaceId":"a","components":[` + text + `]}}`, ""},
		{"", "there is no message"},
		{"x", "line 1: it is not a JSON object"},
		{"[]", "line 1: it is not a JSON object"},
		{"null", "line 1: it is not a JSON object"},
		{`{"deleteSurface":{"surfaceId":"a"}}` + "\n{oops", "line 2: invalid character 'o'"},
		{`{}`, "line 1: no message in it"},
		{`{"version":"v0.9"}`, "no message in it"},
		{`{"surfaceupdate":{}}`, `unknown message or field "surfaceupdate"`},
		{`{"deleteSurface":{"surfaceId":"a"},"beginRendering":{"surfaceId":"a","root":"r"}}`,
			"beginRendering and deleteSurface in one message"},
		{`{"version":"2.0","deleteSurface":{"surfaceId":"a"}}`, `version "2.0" is not supported`},
		{`{"version":"v0.91","deleteSurface":{"surfaceId":"a"}}`, `version "v0.91" is not supported`},
		{`{"version":9,"deleteSurface":{"surfaceId":"a"}}`, "version: it is a text"},
		{`{"version":"v0.9","surfaceUpdate":{"surfaceId":"a"}}`, "surfaceUpdate is no message of version v0.9"},
		{`{"version":"v0.8","createSurface":{"surfaceId":"a"}}`, "createSurface is no message of version v0.8"},
		{`{"version":"v1.0","callFunction":{"call":"openUrl"},"functionCallId":"1"}`, ""}, // either field may be named first
		{`{"deleteSurface":{}}`, "surfaceId is missing"},
		{`{"deleteSurface":{"surfaceId":7}}`, "surfaceId is a number"},
		{`{"deleteSurface":[]}`, "deleteSurface: it is not an object"},
		{`{"deleteSurface":null}`, "deleteSurface: it is not an object"},
		{`{"beginRendering":{"surfaceId":"a"}}`, "root is missing"},
		{`{"surfaceUpdate":{"surfaceId":"a","components":[]}}`, "components is missing or empty"},
		{`{"surfaceUpdate":{"surfaceId":"a","components":[{"id":"x","component":"Text"}]}}`,
			`components[0]: "x": component is an object with one type`},
		{`{"surfaceUpdate":{"surfaceId":"a","components":[{"id":"x","component":{"Text":{},"Row":{}}}]}}`,
			"an object with one type"},
		{`{"surfaceUpdate":{"surfaceId":"a","components":[{"component":{"Text":{}}}]}}`, "components[0]: id is missing"},
		{`{"surfaceUpdate":{"surfaceId":"a","components":[{"id":"x","component":{"Chart":{}}}]}}`,
			`unknown component "Chart"; the components are Text`},
		{`{"updateComponents":{"surfaceId":"a","components":[{"id":"x","component":{"Text":{}}}]}}`,
			"component is the name of a type"},
		{`{"updateComponents":{"surfaceId":"a","components":[{"id":"x","component":"Row","children":[{"id":"y"}]}]}}`,
			"children: ids of components are needed"},
		{`{"updateComponents":{"surfaceId":"a","components":[{"id":"x","component":"Card","child":7}]}}`,
			"child is a number"},
		{`{"dataModelUpdate":{"surfaceId":"a"}}`, "contents: a list"},
		{`{"dataModelUpdate":{"surfaceId":"a","contents":{"x":1}}}`, "contents: a list"},
		{`{"dataModelUpdate":{"surfaceId":"a","contents":[{"key":"x"}]}}`, "contents[0]: a key and one of"},
		{`{"dataModelUpdate":{"surfaceId":"a","contents":[{"key":"x","valueMap":[{"key":"y","valueString":"a","valueNumber":1}]}]}}`, "contents[0]: valueMap: contents[0]"},
		{strings.Repeat("x\n", 30), "and 20 more"},
		{strings.Repeat(`{"deleteSurface":{"surfaceId":"a"}}`+"\n", maxMessages+1), "more than 500 messages"},
		{strings.Repeat(" ", MaxLines+1), "at most 262144 can be pushed"},
		{`{"deleteSurface":{"surfaceId":"` + strings.Repeat("a", maxID+1) + `"}}`, "surfaceId has more than 200 bytes"},
		{"{\"deleteSurface\":{\"surfaceId\":\"\xff\"}}", "not UTF-8"},
	} {
		_, err := Parse(tt.lines)
		if strings.Contains(tt.lines, "callFunction") {
			if err == nil || !strings.Contains(err.Error(), "callFunction") {
				t.Errorf("%s: %v", tt.lines, err)
			}
			continue
		}
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%.200s: %v, want %q", tt.lines, err, tt.err)
		}
	}
}

// board returns the board after pushes.
func board(t *testing.T, pushes ...string) Board {
	t.Helper()
	var b Board
	for _, p := range pushes {
		m, err := Parse(p)
		if err == nil {
			b, err = b.With(m)
		}
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
	}
	return b
}

func TestBoard(t *testing.T) {
	t.Parallel()
	const (
		create = `{"version":"1.0","createSurface":{"surfaceId":"a","components":[{"id":"root","component":"Column","children":["b","c"]},{"id":"b","component":"Button","child":"l","action":{"event":{"name":"go"}}}]}}`
		older  = `{"surfaceUpdate":{"surfaceId":"o","components":[{"id":"r","component":{"Button":{"child":"l","action":{"name":"old"}}}}]}}`
	)
	data := func(path, value string) string {
		return fmt.Sprintf(`{"version":"1.0","updateDataModel":{"surfaceId":"a","path":%q,"value":%s}}`, path, value)
	}
	t.Run("a push that does not fit changes nothing", func(t *testing.T) {
		b := board(t, create, older)
		for lines, want := range map[string]string{
			create:                          "there is a surface",
			data("/x", "1") + "\n" + create: "message 2: createSurface",
			`{"version":"v0.9","updateDataModel":{"surfaceId":"new","value":1}}`: "createSurface comes first",
			`{"deleteSurface":{"surfaceId":"new"}}`:                              `there is no surface "new"`,
			`{"version":"v0.9","updateDataModel":{"surfaceId":"o","value":1}}`:   "another version",
			`{"dataModelUpdate":{"surfaceId":"a","contents":[]}}`:                "another version",
		} {
			m, err := Parse(lines)
			if err != nil {
				t.Fatal(err)
			}
			next, err := b.With(m)
			if err == nil || !strings.Contains(err.Error(), want) || len(next.Messages()) != 2 {
				t.Errorf("%s: %v, want %q", lines, err, want)
			}
		}
	})
	t.Run("what later messages make superfluous is forgotten, and nothing else", func(t *testing.T) {
		b := board(t, create, data("/x/y", "1"), data("/xy", "2"), data("/x", "3"), data("/z", "4"), data("/x/", "5"))
		var got []string
		for _, m := range b.Messages()[1:] {
			got = append(got, string(m.Raw))
		}
		if want := []string{data("/xy", "2"), data("/z", "4"), data("/x/", "5")}; !slices.Equal(got, want) {
			t.Errorf("the board has %v, want %v", got, want)
		}
		if whole := board(t, create, data("/x", "1"), data("/", "{}")); len(whole.Messages()) != 2 ||
			len(whole.Surfaces()) != 1 {
			t.Errorf("after all data was replaced: %v", whole.Messages())
		}
		for i := range 2000 { // a dashboard that runs for ever
			m, _ := Parse(data("/clock", fmt.Sprint(i)))
			var err error
			if b, err = b.With(m); err != nil {
				t.Fatal(i, err)
			}
		}
		if n := len(b.Messages()); n != 5 {
			t.Errorf("the board has %d messages", n)
		}
		if b = board(t, create, data("/x", "1"), `{"deleteSurface":{"surfaceId":"a"}}`); !b.Empty() {
			t.Errorf("after the surface was deleted: %v", b)
		}
	})
	t.Run("it is limited", func(t *testing.T) {
		b := board(t, create)
		var err error
		for i := 0; err == nil; i++ {
			m, _ := Parse(data(fmt.Sprintf("/k%d", i), `"`+strings.Repeat("x", 10_000)+`"`))
			b, err = b.With(m)
		}
		if !strings.Contains(err.Error(), "delete surfaces, or reset it") || len(b.Messages()) > maxKept {
			t.Errorf("%v, with %d messages", err, len(b.Messages()))
		}
		b, err = Board{}, nil
		for i := 0; err == nil && i < 100; i++ {
			m, _ := Parse(fmt.Sprintf(`{"version":"v0.9","createSurface":{"surfaceId":"s%d"}}`, i))
			b, err = b.With(m)
		}
		if err == nil || len(b.Surfaces()) != maxSurfaces {
			t.Errorf("%v, with %d surfaces", err, len(b.Surfaces()))
		}
	})
	t.Run("actions are those of the components that are there", func(t *testing.T) {
		b := board(t, create, older)
		for _, tt := range []struct {
			surface, part, action string
			want                  bool
		}{
			{"a", "b", "go", true}, {"a", "b", "stop", false}, {"a", "root", "go", false}, {"a", "b", "", false},
			{"x", "b", "go", false},
			{"o", "r", "old", false}, // it has not begun
		} {
			if got := b.Offers(tt.surface, tt.part, tt.action); got != tt.want {
				t.Errorf("%v: %v", tt, got)
			}
		}
		if b = board(t, create, older, `{"beginRendering":{"surfaceId":"o","root":"r"}}`); !b.Offers("o", "r", "old") {
			t.Error("the action of a surface that has begun is refused")
		}
		if got := b.Missing(); !slices.Equal(got, []string{"c (a)", "l (a)", "l (o)"}) {
			t.Errorf("missing: %v", got)
		}
	})
}

func TestPageOf(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"":                            "",
		"/":                           "index.html",
		"report.html":                 "report.html",
		"./x":                         "bad",
		"a/b.html":                    "a/b.html",
		"canvas/a.html":               "a.html",
		"/__openclaw__/canvas/a.html": "a.html",
		"/__openclaw__/canvas/":       "index.html",
		"a%20b.html":                  "a b.html",
		"a.html?x=1#y":                "a.html",
		"sub/":                        "sub",
		"../x":                        "bad",
		"a/../x":                      "bad",
		"%2e%2e/x":                    "bad",
		"a//b":                        "bad",
		`a\b`:                         "bad",
		"a%00":                        "bad",
		"https://example.org/x":       "external",
		"http://10.0.0.1":             "external",
		"HTTPS://Example.org":         "external",
		"javascript:alert(1)":         "bad",
		"data:text/html,x":            "bad",
		"file:///etc/passwd":          "bad",
		"//evil.example/x":            "bad",

		"https://a:b@example.org": "bad",
		"http:":                   "bad",
	} {
		page, external, ok := PageOf(target)
		got := page
		if external {
			got = "external"
		}
		if !ok {
			got = "bad"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	for _, tt := range []struct {
		host, plugins, env string
		on                 bool
		root               string
	}{
		{"", "", "", true, ""},
		{`{"enabled":false}`, "", "", false, ""},
		{`{"root":"/a"}`, `{"entries":{"canvas":{"config":{"host":{"root":"/b"}}}}}`, "", true, "/b"},
		{`{"enabled":false}`, `{"entries":{"canvas":{"config":{"host":{"enabled":true}}}}}`, "", true, ""},
		{"", `{"entries":{"canvas":{"enabled":false}}}`, "", false, ""},
		{"", `{"entries":{"canvas":{"enabled":true}}}`, "", true, ""},
		{`{"enabled":false}`, `{"entries":{"canvas":{"enabled":true}}}`, "", false, ""}, // each of them switches it off
		{"", `{"entries":{"other":{"enabled":false,"config":7}}}`, "", true, ""},
		{"", "", "1", false, ""}, {"", "", "true", false, ""}, {"", "", "0", true, ""}, {"", "", "false", true, ""},
	} {
		c, err := ParseConfig([]byte(tt.host), []byte(tt.plugins))
		env := none
		if tt.env != "" {
			env = func(string) string { return tt.env }
		}
		if c = c.In(env); err != nil || c.On() != tt.on || c.Root != tt.root || !c.Reloads() {
			t.Errorf("%+v: %+v, %v", tt, c, err)
		}
	}
	if _, err := ParseConfig([]byte(`{"enabled":"x"}`), nil); err == nil || !strings.Contains(err.Error(), "canvasHost") {
		t.Error(err)
	}
}

// FuzzParse checks that what is accepted is JSON in one line, can be pushed or is refused, and
// that the text of a person is always accepted.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		Text("hello"), `{"version":"1.0","createSurface":{"surfaceId":"a","components":[{"id":"root","component":"Tabs","tabs":[{"title":"x","child":"y"}]}],"dataModel":{}}}`,
		`{"dataModelUpdate":{"surfaceId":"a","path":"x","contents":[{"key":"a","valueMap":[]}]}}`, "{", "{}\n[]",
		`{"deleteSurface":{"surfaceId":"a"}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		messages, err := Parse(lines)
		if err == nil {
			for _, m := range messages {
				if !json.Valid(m.Raw) || strings.Contains(string(m.Raw), "\n") || m.Surface == "" {
					t.Fatalf("%q", m.Raw)
				}
			}
			if b, err := (Board{}).With(messages); err == nil {
				if again, err := (Board{}).With(b.Messages()); err != nil || !slices.Equal(again.Surfaces(), b.Surfaces()) {
					t.Fatalf("the kept messages are not valid: %v", err)
				}
			}
		}
		if len(lines) < 1000 {
			m, err := Parse(Text(lines))
			if strings.ToValidUTF8(lines, "") == lines && (err != nil || len(m) != 2) {
				t.Fatalf("%q as a text: %v", lines, err)
			}
		}
	})
}
