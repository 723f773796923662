package pdf_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/ascii85"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/tool/web/pdf"
)

// body returns a file with the objects, numbered from 1: a catalogue, the
// pages, a page whose content is object 4 and whose resources are object 5.
func body(objects ...string) []byte {
	all := append([]string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 /Resources 5 0 R >>",
		"<< /Type /Page /Parent 2 0 R /Contents 4 0 R >>",
	}, objects...)
	var b strings.Builder
	b.WriteString("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	for i, o := range all {
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	b.WriteString("trailer\n<< /Size 9 /Root 1 0 R >>\nstartxref\n0\n%%EOF")
	return []byte(b.String())
}

func stream(extra, data string) string {
	return fmt.Sprintf("<< /Length %d %s >>\nstream\n%s\nendstream", len(data), extra, data)
}

func deflated(extra, data string) string {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = z.Write([]byte(data))
	_ = z.Close()
	return stream("/Filter /FlateDecode "+extra, b.String())
}

const resources = `<< /Font << /F 6 0 R >> /XObject << /X 7 0 R >> >>`

const helvetica = `<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>`

// predicted is deflated with one of the predictors of PNG for each row, in turn.
func predicted(columns int, data string) string {
	var rows []byte
	up := make([]byte, columns)
	for n := 0; n*columns < len(data); n++ {
		row := []byte(data[n*columns : min((n+1)*columns, len(data))])
		method := n % 5
		rows = append(rows, byte(method))
		for i, b := range row {
			var left, corner byte
			if i > 0 {
				left, corner = row[i-1], up[i-1]
			}
			rows = append(rows, b-[...]byte{0, left, up[i], byte((int(left) + int(up[i])) / 2),
				paeth(left, up[i], corner)}[method])
		}
		copy(up, row)
	}
	return deflated(fmt.Sprintf("/DecodeParms << /Predictor 15 /Columns %d >>", columns), string(rows))
}

// paeth returns the neighbour that is nearest to left + up - corner.
func paeth(left, up, corner byte) byte {
	distance := func(b byte) int {
		return max(int(left)+int(up)-int(corner)-int(b), int(b)-int(left)-int(up)+int(corner))
	}
	best := left
	for _, b := range []byte{up, corner} {
		if distance(b) < distance(best) {
			best = b
		}
	}
	return best
}

func TestText(t *testing.T) {
	simple := "BT /F 10 Tf 14 TL 1 0 0 1 72 700 Tm (Hello) Tj ( world) Tj T* (Second \\(line\\) \\344\\n) Tj (x) ' 3 1 (y) \" ET"
	var a85 bytes.Buffer
	enc := ascii85.NewEncoder(&a85)
	_, _ = enc.Write([]byte(simple))
	_ = enc.Close()
	const want = "Hello world\nSecond (line) ä\nx\ny"
	tests := []struct {
		name string
		file []byte
		want string
	}{
		{"plain content", body(stream("", simple), resources, helvetica), want},
		{"deflated", body(deflated("", simple), resources, helvetica), want},
		{"predicted in one column", body(predicted(1, simple), resources, helvetica), want},
		{"predicted in seven columns", body(predicted(7, simple), resources, helvetica), want},
		{"an odd number of digits", body(stream("", "BT /F 10 Tf <48 65 6C 6C 6F 2> Tj (world) Tj ET"), resources, helvetica),
			"Hello world"},
		{"values that nobody needs", body(stream("", simple), resources, strings.Replace(helvetica, "/Subtype",
			"/A true /B null /C false /Subtype", 1)), want},
		{"ASCII85", body(stream("/Filter [/ASCII85Decode]", a85.String()+"~>"), resources, helvetica), want},
		{"hexadecimal", body(stream("/Filter /AHx", fmt.Sprintf("%x>", simple)), resources, helvetica), want},
		{"content in two streams", bytes.Replace(body(stream("", simple[:37]), resources, helvetica, stream("", simple[37:])),
			[]byte("/Contents 4 0 R"), []byte("/Contents [4 0 R 7 0 R]"), 1), want},
		{"a wrong length", bytes.Replace(body(stream("", simple), resources, helvetica), []byte("/Length "),
			[]byte("/Length 9"), 1), want},
		{"a length by reference", body(strings.Replace(stream("", simple), fmt.Sprint("/Length ", len(simple)),
			"/Length 7 0 R", 1), resources, helvetica, fmt.Sprint(len(simple))), want},
		{"no trailer", bytes.Replace(body(stream("", simple), resources, helvetica), []byte("trailer"), []byte("tr"), 1),
			want},
		{"no page tree", bytes.Replace(body(stream("", simple), resources, helvetica), []byte("/Contents 4 0 R"),
			[]byte("/Resources 5 0 R /Contents 4 0 R"), 1)[60:], want},
		{"a later version of an object", append(body(stream("", "BT (old) Tj ET"), resources, helvetica), "\n4 0 obj\n"+
			stream("", simple)+"\nendobj"...), want},
		{"large and small gaps", body(stream("", "BT /F 10 Tf [(wo) 20 (rd) -600 (other)] TJ 100 0 Td (far) Tj ET"),
			resources, helvetica), "word other far"},
		{"a step back is a gap", body(stream("", "BT /F 10 Tf (right) Tj -200 0 Td (left) Tj ET"), resources, helvetica),
			"right left"},
		{"a large step is a paragraph", body(stream("", "BT /F 10 Tf (a) Tj 0 -12 Td (b) Tj 0 -30 TD (c) Tj ET"), resources,
			helvetica), "a\nb\n\nc"},
		{"scaled text", body(stream("", "BT /F 1 Tf 10 0 0 10 72 700 Tm (a) Tj 10 0 0 10 72 688 Tm (b) Tj ET"), resources,
			helvetica), "a\nb"},
		{"a form", body(stream("", "/X Do"), resources, helvetica, stream("/Subtype /Form", simple)), want},
		{"an inline image", body(stream("", "BI /W 1 /H 1 ID \x00(junk EI "+simple), resources, helvetica), want},
		{"names of glyphs", body(stream("", "BT /F 10 Tf <0102030405060708> Tj ET"), resources,
			`<< /Subtype /Type1 /Encoding << /Differences [1 /A /eacute /fi /uni4F60 2 /odieresis 5 /quoteright /a.alt /u1F600 /nothing ] >> >>`), "Aöfi你’a😀"},
		{"Mac", body(stream("", "BT /F 10 Tf (\x8a) Tj ET"), resources,
			`<< /Subtype /TrueType /Encoding /MacRomanEncoding >>`), "ä"},
		{"two-byte codes", body(stream("", "BT /F 10 Tf <0001000200030010001100124e00> Tj ET"), resources,
			`<< /Subtype /Type0 /Encoding /Identity-H /ToUnicode 7 0 R /DescendantFonts [<< /DW 1000 /W [1 [500 500] 3 9 250] >>] >>`,
			deflated("",
				"1 begincodespacerange <0000> <ffff> endcodespacerange 2 beginbfchar <0001> <0048> <0002> <00660069> endbfchar "+
					"2 beginbfrange <0003> <0004> <4f60> <0010> <0012> [<0041> <d83dde00> <0043>] endbfrange")), "Hfi你A😀C"},
		{"UTF-16 codes", body(stream("", "BT /F 10 Tf <4f60597d> Tj ET"), resources,
			`<< /Subtype /Type0 /Encoding /UniGB-UCS2-H >>`), "你好"},
		{"widths", body(stream("", "BT /F 10 Tf (ab) Tj 20 0 Td (c) Tj ET"), resources,
			`<< /Subtype /Type1 /FirstChar 97 /Widths [1000 1000 1000] >>`), "abc"},
		{"objects in a stream",
			[]byte("%PDF-1.5\n4 0 obj\n" + stream("", simple) + "\nendobj\n8 0 obj\n" + deflated("/Type /ObjStm /N 5 /First 26",
				"1 0 2 40 3 80 5 140 6 200 "+pad(40, "<< /Type /Catalog /Pages 2 0 R >>")+
					pad(40, "<< /Kids [3 0 R] /Resources 5 0 R >>")+
					pad(60, "<< /Type /Page /Contents 4 0 R >>")+pad(60, "<< /Font << /F 6 0 R >> >>")+helvetica) +
				"\nendobj\n9 0 obj\n" + stream("/Type /XRef /Root 1 0 R /W [1 1 1] /Size 999999999 /Index [0 999999999]",
				"\x00\x00\x00") + "\nendobj"), want},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, pages, err := pdf.Text(t.Context(), tt.file)
			if err != nil || got != tt.want || pages != 1 {
				t.Errorf("got %q, want %q (%d pages, %v)", got, tt.want, pages, err)
			}
		})
	}
}

func pad(n int, s string) string { return s + strings.Repeat(" ", n-len(s)) }

func TestRefusal(t *testing.T) {
	file := body(stream("", "BT (x) Tj ET"), resources, helvetica)
	if _, _, err := pdf.Text(t.Context(), bytes.Replace(file, []byte("/Root 1 0 R"), []byte("/Encrypt 9 0 R /Root 1 0 R"),
		1)); !errors.Is(err, pdf.ErrEncrypted) {
		t.Errorf("encrypted: %v", err)
	}
	for _, s := range []string{"", "hello", "%PDF-1.7", strings.Repeat("1 0 obj ", 1000)} {
		if got, _, err := pdf.Text(t.Context(), []byte(s)); err == nil {
			t.Errorf("%.20q: %q", s, got)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := pdf.Text(ctx, file); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestHostile reads files that are expensive to process.
func TestHostile(t *testing.T) {
	var many strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&many, "%d 0 obj << /Length %d 0 R >> stream\n", i+10, i+11)
	}
	show := "BT /F 10 Tf " + strings.Repeat("(aaaaaaaaaaaaaaaa) Tj ", 1000)
	var texts strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&texts, "%d 0 obj(", i+10)
	}
	files := map[string][]byte{
		"unterminated strings":  append(body(stream("", show), resources, helvetica), texts.String()...),
		"unterminated trailers": append(body(stream("", show), resources, helvetica), strings.Repeat("trailer(", 25_000)...),
		"unterminated members": append(body(stream("", show), resources, helvetica),
			"9 0 obj "+deflated("/Type /ObjStm /N 30000 /First 400000", members())...),
		"pages that contain themselves": bytes.Replace(body("1", "2", "3"), []byte("/Kids [3 0 R]"),
			[]byte("/Kids [2 0 R 2 0 R 1 0 R]"), 1),
		"forms that contain themselves": body(stream("", strings.Repeat("/X Do ", 100)), resources, helvetica,
			stream("/Subtype /Form", strings.Repeat("/X Do ", 100))),
		"a length that refers to itself": body("<< /Length 4 0 R >> stream\nx\nendstream", resources, helvetica),
		"lengths of lengths":             append(body("10 0 R", resources, helvetica), many.String()...),
		"deep arrays":                    body(stream("", strings.Repeat("[", 500_000)), resources, helvetica),
		"deep dictionaries":              body(strings.Repeat("<</a", 200_000), resources, helvetica),
		"a bomb":                         body(deflated("", strings.Repeat(show, 1000)), resources, helvetica),
		"bombs": bytes.Replace(body(deflated("", strings.Repeat(show, 300)), resources, helvetica),
			[]byte("/Contents 4 0 R"), []byte("/Contents ["+strings.Repeat("4 0 R ", 1000)+"]"), 1),
		"wide fonts": body(stream("", strings.Repeat("/F 10 Tf ", 50_000)),
			`<< /Font << /F << /Subtype /Type0 /DescendantFonts [<< /W [0 60000 1] >>] >> >> >>`, helvetica),
		"ranges": body(stream("", "/F 1 Tf"), resources, `<< /ToUnicode 7 0 R >>`,
			deflated("", strings.Repeat("<0000> <ffff> <0041> ", 100_000)+"endbfrange")),
		"columns": body(deflated("/DecodeParms << /Predictor 12 /Columns 999999999999 >>", "x"),
			resources, helvetica),
		"references of references": body("4 0 R", "5 0 R", "6 0 R"),
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			text, _, _ := pdf.Text(t.Context(), file)
			if took := time.Since(began); took > waittest.Limit || len(text) > 3<<20 {
				t.Errorf("took %v, %d bytes", took, len(text))
			}
		})
	}
}

// members returns objects in a stream, each of which extends to the end.
func members() string {
	var b strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&b, "%d %d ", i+10, i)
	}
	return pad(400_000, b.String()) + strings.Repeat("(", 30_000)
}

func FuzzText(f *testing.F) {
	f.Add(body(stream("", "BT /F 10 Tf [(a) -300 <62>] TJ 0 -12 Td (c) ' ET /X Do"), resources, helvetica,
		stream("/Subtype /Form", "BT (x) Tj ET")))
	f.Add(body(deflated("/DecodeParms << /Predictor 12 /Columns 3 >>", "\x02abc"), resources,
		`<< /Subtype /Type0 /ToUnicode 7 0 R /DescendantFonts [<< /W [1 [2] 3 4 5] >>] >>`,
		stream("", "1 beginbfrange <01> <05> <41> endbfrange")))
	f.Add([]byte("1 0 obj << /Type /ObjStm /N 1 /First 4 >> stream\n5 0 <</Type/Page/Contents 1 0 R>>endstream"))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, pages, err := pdf.Text(waittest.Context(t), data)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d bytes took more than %v", len(data), waittest.Limit)
		}
		if err != nil && (text != "" || pages != 0) {
			t.Errorf("text with an error: %v", err)
		}
	})
}
