package forget

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "empty",
		"  ":                            "empty",
		"a":                             "too short",
		"?":                             "too short",
		`""`:                            "too short",
		strings.Repeat("x", 201):        "too long",
		"a b c d e f g h k l m n o p q": "too many words",
		"a 猫":                           "too short",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ topic, text, rest string }{
		{"Anna's birthday", "- Anna's birthday is 5 May\n- Bob likes tea\n", "- Bob likes tea\n"},
		{"anna birthday", "# People\nBirthday of ANNA: 5 May", "# People\n"},
		{"my sister", "The sister of Bob\nmy car", "my car"},
		{"router", "The routers run.\nA trouter.\nThe router's light.", "A trouter.\n"},
		{"ann", "Anna and Hannah", "Anna and Hannah"},
		{"anna", "about Hannah", "about Hannah"},
		{"生日", "- 小红的生日是五月五日\n- 天气很好\n", "- 天气很好\n"},
		{"生日 小红", "小红\n五月五日生日\n别的", "别的"},
		{`"5 may"`, "on 5 May\non 15 maybe\non 5  May", "on 5  May"},
		{`“Baker Street”`, "221b Baker Street\nthe baker in the street", "the baker in the street"},
		{"cat felix", "My cat:\nname Felix\ncolor black\n", "color black\n"},
		{"cat felix", "My cat is old.\n\n\n\nFelix came.", "My cat is old.\n\n\n\nFelix came."},
		{"cat felix", "A cat.\nMy cat Felix.\nFelix Mendelssohn.", "A cat.\nFelix Mendelssohn."},
		{"tomasz locker", "The locker of Mei has the code 4693.\nTomasz waits for the contract.",
			"The locker of Mei has the code 4693.\nTomasz waits for the contract."},
		{"tomasz locker", "- locker of Mei: 4693\n- contract of Tomasz\n", "- locker of Mei: 4693\n- contract of Tomasz\n"},
		{"tomasz locker", "1. locker of Mei\n2. call Tomasz", "1. locker of Mei\n2. call Tomasz"},
		{"tomasz locker", "Tomasz:\n- locker 4004\n- desk 7\n", "- desk 7\n"},
		{"the who", "we heard the who", ""}, // common words alone are taken as they are
		{"pin 4711", "a\r\nPIN 4711\r\nb\r\n", "a\r\nb\r\n"},
		{"Größe", "GRÖSSE\nDie größen der Schuhe", ""},
	} {
		topic, err := Parse(tt.topic)
		if err != nil {
			t.Errorf("%s: %v", tt.topic, err)
			continue
		}
		if rest, _ := topic.Cut(tt.text, ""); rest != tt.rest {
			t.Errorf("%s in %q: %q, want %q", tt.topic, tt.text, rest, tt.rest)
		}
	}
	if topic, _ := Parse("removed"); topic.In(Removed + "\n") {
		t.Error("what was removed is found again")
	}
	topic, _ := Parse("secret")
	if rest, removed := topic.Cut("a\nsecret 1\nsecret 2\nb\nsecret 3", Removed); rest != "a\n"+Removed+"\nb\n"+Removed ||
		!slices.Equal(removed, []string{"secret 1", "secret 2", "secret 3"}) {
		t.Errorf("rest %q, removed %q", rest, removed)
	}
}

func TestCutJSON(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ doc, rest, kept string }{
		{`{"text":"my Secret","n": 1.50 ,"b":[true, "x"]}`, `{"text":"[removed on request]","n": 1.50 ,"b":[true, "x"]}`, ""},
		{`{"id":"secret","sessionKey":"agent:main:secret","text":"other"}`,
			`{"id":"secret","sessionKey":"agent:main:secret","text":"other"}`, "secret,agent:main:secret"},
		{`{"address":{"channel":"chat","name":"secret"},"text":"secret"}`,
			`{"address":{"channel":"chat","name":"secret"},"text":"[removed on request]"}`, "secret"},
		{`[{"a":"{\"content\":\"a secret\\n\",\"path\":\"x.md\"}"}]`,
			`[{"a":"{\"content\":\"[removed on request]\\n\",\"path\":\"x.md\"}"}]`, ""},
		{`{"text":"a <b> & secret\nnext \u00fc"}`, `{"text":"[removed on request]\nnext ü"}`, ""},
		{`{"text":"s\u0065cret"}`, `{"text":"[removed on request]"}`, ""},
		{`{"secret":1}`, `{"secret":1}`, "secret"},
		{`"secret"`, `"[removed on request]"`, ""},
		{`{"text":"secret"`, `{"text":"secret"`, ""}, // not valid
	} {
		topic, err := Parse("secret")
		if err != nil {
			t.Fatal(err)
		}
		rest, _, kept := topic.CutJSON(tt.doc)
		if rest != tt.rest || strings.Join(kept, ",") != tt.kept {
			t.Errorf("%s:\n got %s, kept %q\nwant %s, kept %q", tt.doc, rest, kept, tt.rest, tt.kept)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("anna birthday", "- Anna's birthday is 5 May\n- x\n")
	f.Add(`"生日"`, "{\"text\":\"生日\\n\"}")
	f.Add("a'b", "[\"a'b\",{\"id\":\"a'b\"}]")
	f.Fuzz(func(t *testing.T, words, text string) {
		topic, err := Parse(words)
		if err != nil {
			return
		}
		rest, removed := topic.Cut(text, "")
		if len(removed) == 0 && rest != text {
			t.Errorf("%q changed to %q although nothing was removed", text, rest)
		}
		if again, more := topic.Cut(text, Removed); len(more) != len(removed) {
			t.Errorf("%d lines, with a replacement %d: %q", len(removed), len(more), again)
		}
		if len(rest) > len(text) || utf8.ValidString(text) && !utf8.ValidString(rest) {
			t.Errorf("%q became %q", text, rest)
		}
		doc, cut, _ := topic.CutJSON(text)
		if json.Valid([]byte(text)) && !json.Valid([]byte(doc)) {
			t.Errorf("%q became %q", text, doc)
		}
		if len(cut) == 0 && doc != text {
			t.Errorf("%q changed to %q although nothing was removed", text, doc)
		}
	})
}
