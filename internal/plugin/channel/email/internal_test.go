package email

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/channel"
)

// TestFileName checks the forms in which servers tell the name of a file.
func TestFileName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		params map[string]string
		want   string
	}{
		{nil, ""},
		{map[string]string{"filename": "a.txt"}, "a.txt"},
		{map[string]string{"filename": "=?utf-8?q?=C3=A4.txt?="}, "ä.txt"},
		{map[string]string{"filename*": "utf-8'en'%e2%82%ac%20a.txt"}, "€ a.txt"},
		{map[string]string{"filename*": "iso-8859-1''%e4.txt", "filename": "x"}, "ä.txt"},
		{map[string]string{"filename*0*": "utf-8''%e2%82%ac", "filename*1": " 100%25", "filename*2*": "%2etxt"},
			"€ 100%25.txt"},
		{map[string]string{"filename*0": "long", "filename*1": ".txt"}, "long.txt"},
		{map[string]string{"filename*": "%zz"}, "%zz"},
		{map[string]string{"filename": `C:\dir\a.txt`}, "a.txt"},
		{map[string]string{"filename": "../../a\x00b\n.txt"}, "a b .txt"},
	} {
		if got := fileName(tt.params, "filename"); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.params, got, tt.want)
		}
	}
}

func TestDivide(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, subject string
		reply         bool
		want          said
	}{
		{"Ja\n\nAm 2.3.2026 um 10:00 schrieb Chela:\n> eins\n> > null\n", "", true, said{text: "Ja", quote: "eins\n> null"}},
		{"First point:\nsecond\n> q\n", "", true, said{text: "First point:\nsecond", quote: "q"}},
		{"My list:\n> q\n", "", true, said{text: "My list:", quote: "q"}},
		{"On Mon, 2 Mar 2026 at 10:00 a very long name\n<chela@example.org>\nwrote:\n\n> q\n\nBelow.\n", "", true,
			said{text: "Below.", quote: "q"}},
		{"> q\nx", "Re[2]: y", false, said{text: "x", quote: "q"}},
		{"From: me\nis no header of a mail", "", true, said{text: "From: me\nis no header of a mail"}},
		{"see\n\nBegin forwarded message:\n\nFrom: A\n\nx", "", true,
			said{text: "see\n\nBegin forwarded message:\n\nFrom: A\n\nx"}},
		{"Von: A <a@x.example>\nGesendet: heute\nAn: B\nBetreff: C\n\nx", "WG: C", false,
			said{text: "Von: A <a@x.example>\nGesendet: heute\nAn: B\nBetreff: C\n\nx", forwarded: "A <a@x.example>"}},
		{"", "", true, said{}},
	} {
		if got := divide(tt.text, tt.subject, tt.reply); got != tt.want {
			t.Errorf("%q: got %+v, want %+v", tt.text, got, tt.want)
		}
	}
}

func TestFromHTML(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a<br><br>b":                                            "a\n\nb",
		"<p>a</p><p>b</p>":                                      "a\n\nb",
		"<div>a</div><div>b</div>":                              "a\nb",
		"  a <b> b</b>\n c&amp;&lt;d&gt; ":                      "a b c&<d>",
		"<pre>a\n  b</pre>c":                                    "a\n  b\nc",
		"<table><tr><td>a</td><td>b</td></tr><tr><td>c":         "a b\nc",
		"<blockquote>a<blockquote>b</blockquote></blockquote>c": "> a\n>> b\nc",
		`<a href="https://x.example">https://x.example</a>`:     "https://x.example",
		`<a href="javascript:x()">a</a>`:                        "a",
		`<img alt="a cat" src=x>`:                               "[a cat]",
		"<span hidden>a<span>b</span></span>c":                  "c",
		"<br hidden>a":                                          "a",
		"</blockquote></pre></a>x":                              "x",
		strings.Repeat("<div>", 100_000) + "x":                  "x",
	} {
		if got := fromHTML(in); got != want {
			t.Errorf("%.80q: got %.80q, want %q", in, got, want)
		}
	}
	if got := fromHTML(strings.Repeat("<p>word</p>", 1_000_000)); len(got) > maxHTML+100 {
		t.Errorf("%d bytes", len(got))
	}
}

// TestPeers checks that the number of correspondents is bounded.
func TestPeers(t *testing.T) {
	t.Parallel()
	b := &bot{state: &state{Peers: map[string]*peer{}}}
	for n := range maxPeers + 10 {
		address := fmt.Sprint("p", n, "@x.example")
		for i := range maxMails + 5 {
			if err := b.note(address, memo{ID: fmt.Sprint(i, "@x.example")}); err != nil {
				t.Fatal(err)
			}
		}
		b.state.Peers[address].At = int64(n)
	}
	if n := len(b.state.Peers); n != maxPeers {
		t.Errorf("%d peers", n)
	}
	if b.state.Peers["p0@x.example"] != nil || len(b.state.Peers["p500@x.example"].Mails) != maxMails {
		t.Error("the wrong ones are forgotten")
	}
	var st state
	for n := range 3 * maxRecent {
		st.handled(uint32(n), fmt.Sprint(n), time.Unix(int64(n), 0))
	}
	if len(st.Recent) != maxRecent || st.Recent[maxRecent-1] != fmt.Sprint(3*maxRecent-1) {
		t.Errorf("%d mails are remembered", len(st.Recent))
	}
	for n := range maxKeys + 10 {
		b.sent = map[string]receipt{}
		b.order = b.order[:0]
		if n > 0 {
			break
		}
		for i := range maxKeys + 10 {
			b.remember(fmt.Sprint(i), receipt{})
		}
		if len(b.sent) != maxKeys || len(b.order) != maxKeys {
			t.Errorf("%d keys are remembered", len(b.sent))
		}
	}
}

// hostile returns a connection to a server that answers to FETCH as told.
func hostile(answer string) net.Conn {
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		lines := bufio.NewScanner(theirs)
		fmt.Fprint(theirs, "* OK [CAPABILITY IMAP4rev1] ready\r\n")
		for lines.Scan() {
			tag, command, _ := strings.Cut(lines.Text(), " ")
			switch {
			case strings.HasPrefix(command, "CAPABILITY"):
				fmt.Fprintf(theirs, "* CAPABILITY IMAP4rev1\r\n%s OK done\r\n", tag)
			case strings.HasPrefix(command, "UID FETCH"):
				fmt.Fprint(theirs, answer)
				end := strings.Repeat(answer[len(answer)-1:], 1<<20)
				for range 100 {
					if _, err := fmt.Fprint(theirs, end); err != nil {
						return
					}
				}
				panic("the client reads without an end")
			default:
				fmt.Fprintf(theirs, "%s OK done\r\n", tag)
			}
		}
	}()
	return ours
}

// TestHostile connects to servers that answer with too much.
func TestHostile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, answer, want string }{
		{"a deeply nested structure", "* 1 FETCH (UID 1 BODYSTRUCTURE " + strings.Repeat("(", 2_000_000), errNested.Error()},
		{"nested mails", "* 1 FETCH (UID 1 BODYSTRUCTURE " +
			strings.Repeat(`("message" "rfc822" NIL NIL NIL "7bit" 1 (NIL NIL NIL NIL NIL NIL NIL NIL NIL NIL) `, 20_000),
			errTooLong.Error()},
		{"a long header", "* 1 FETCH (UID 1 BODY[HEADER]<0> {900000000}\r\n" + strings.Repeat("x", 2_000_000),
			errTooLong.Error()},
		{"a long line", "* OK " + strings.Repeat("x", 2_000_000), errTooLong.Error()},
		{"many answers", strings.Repeat("* 5 EXISTS\r\n", 200_000), errTooLong.Error()},
		{"nonsense", "* 1 FETCH (((\r\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := &bot{c: config{imap: endpoint{host: "x", addr: "x:1", tls: none, user: "u", password: "p"}}}
			b.env = channel.Env{Dial: func(context.Context, string, ...string) (net.Conn, error) {
				return hostile(tt.answer), nil
			}}
			l, err := b.connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer l.close()
			if !strings.Contains(tt.answer, "STRUCTURE") {
				if m, err := l.read(t.Context(), 1); err == nil {
					t.Errorf("got %+v", m)
				}
				l.close()
				if l, err = b.connect(t.Context()); err != nil {
					t.Fatal(err)
				}
				defer l.close()
			}
			if c, err := l.structure(t.Context(), 1); err == nil {
				t.Errorf("got %+v", c)
			} else if tt.want != "" && err.Error() != "email: read a mail: "+tt.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

// FuzzHeader parses headers as they are in mails.
func FuzzHeader(f *testing.F) {
	for _, s := range []string{
		"From: Ann <ann@x.example>\r\nTo: =?utf-8?q?=C3=84?= <chela@example.org>,\r\n\tb@x.example\r\nMessage-ID: <1@x>\r\nDate: Mon, 2 Mar 2026 10:00:00 +0000\r\n\r\nbody",
		"Authentication-Results: mx.example.org 1; dmarc=pass (p=none (x)) header.from=\"x.example\"; dkim/1 = pass header.d = x.example\r\nFrom: ann@x.example\r\n",
		"Authentication-Results: x;;=; a=b c=; \"\r\n", "a\n b\n: c\nd :e\n\tf", "From: a@b.c\x00\rFrom: d@e.f\n",
		"References: <<a@b>> <c@d", "From: \"a@b.c\" <@x>\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h := parseHeader([]byte(s))
		if len(h) > maxFields {
			t.Errorf("%d fields", len(h))
		}
		for _, fd := range h {
			if strings.ContainsAny(fd.key+fd.value, "\r\n\x00") || fd.key != strings.ToLower(fd.key) {
				t.Errorf("a field %q: %q", fd.key, fd.value)
			}
			id, results, ok := parseResults(fd.value)
			if ok && len(results) > 0 && id == "" {
				t.Errorf("results of nobody: %q", fd.value)
			}
		}
		if address, _, err := h.from(); err == nil {
			if again, err := normalize(address); err != nil || again != address {
				t.Errorf("%q is normalized as %q, %v", address, again, err)
			}
			if authenticate(h, address, "example.org") == nil && !strings.Contains(strings.ToLower(s), "pass") {
				t.Errorf("authenticated: %q", s)
			}
		}
		for _, id := range append(ids(h.get("references"), 5), h.messageID()) {
			if id != "" && (!isID(id) || strings.ContainsAny(id, " <>\r\n")) {
				t.Errorf("an id %q", id)
			}
		}
		_, _ = h.recipients()
		_ = automatic(h)
		_ = h.date()
		if d := decode(s, 50); len(d) > 53 || !utf8.ValidString(d) {
			t.Errorf("decode(%q) = %q", s, d)
		}
	})
}

// FuzzText makes the text of a mail of its content.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"Yes\n\nOn Monday Ann wrote:\n> x\n-- \nAnn",
		"<p>a<blockquote>b<br>c</blockquote><a href='https://x.example'>d</a><pre>\n e</pre>", "=C3=A4=\n=zz",
		"w6Q=\n!!w6", "a \n> b \n>> c\n",
		"From: a\nSent: b\nTo: c\nSubject: d", "\xff\xfe\x00", "---------- Forwarded message ---------\nFrom: x",
		"utf-8''%e2%82", "1/2/3.4/base64",
	} {
		f.Add(s, "utf-8", true)
		f.Add(s, "iso-2022-jp", false)
	}
	f.Fuzz(func(t *testing.T, s, charset string, reply bool) {
		for _, encoding := range []string{"", "base64", "quoted-printable"} {
			p := part{kind: "text/plain", encoding: encoding, params: map[string]string{"charset": charset, "format": "flowed"}}
			text := decodeText(p, []byte(s))
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\r\x00\x1b") {
				t.Errorf("decodeText(%q) = %q", s, text)
			}
			got := divide(text, s, reply)
			if len(got.quote) > maxQuote+3 || len(got.forwarded) > maxName+3 || len(got.text) > len(text) {
				t.Errorf("divide(%q) = %+v", text, got)
			}
		}
		if got := fromHTML(s); len(got) > 20*len(s)+100 {
			t.Errorf("fromHTML(%q) has %d bytes", s, len(got))
		}
		name := fileName(map[string]string{"name*": s, "name*0*": s, "name*1": s}, "name")
		if strings.ContainsAny(name, "\r\n\x00") || name != "/" && strings.Contains(name, "/") {
			t.Errorf("a name %q", name)
		}
		if src, path, ok := parseSource(s); ok && (len(path) == 0 || src.uid == 0) {
			t.Errorf("parseSource(%q) = %v, %v", s, src, path)
		}
	})
}

// FuzzAddress checks that an address cannot break a header or a command.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"ann@x.example", "Ann@BÜCHER.example", "a>@x.example", "a@x\r\nRCPT", "\"a b\"@x",
		"a@[127.0.0.1]", "K@\u212A.example", "@", "a@b@c.d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := normalize(s)
		if err != nil {
			return
		}
		if a != strings.ToLower(a) || strings.Count(a, "@") != 1 || strings.ContainsAny(a, " <>\"\r\n\t,;\\") ||
			len(a) > maxAddress {
			t.Errorf("normalize(%q) = %q", s, a)
		}
		l := letter{
			from:     "chela@example.org",
			to:       a,
			id:       "1@example.org",
			text:     s,
			name:     s,
			answered: &memo{ID: s, Subject: s, Refs: []string{s}},
			now:      time.Unix(0, 0),
		}
		data, err := l.bytes()
		if err != nil {
			t.Fatal(err)
		}
		h := parseHeader(data)
		for _, key := range []string{"from", "to", "subject", "message-id", "auto-submitted", "content-type"} {
			if len(h.all(key)) != 1 {
				t.Errorf("%d fields %s for %q", len(h.all(key)), key, s)
			}
		}
	})
}
