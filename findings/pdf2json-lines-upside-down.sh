#!/bin/sh
# pdf2json 4.0.3 (npm, needs Node): the text of a page comes with its last line first. The
# positions that it reports are right; only getRawTextContent puts the lines together from the
# bottom of the page to its top. The page is as small as one can be: a font, and three lines
# that are written from top to bottom. A page that Chromium printed is turned in the same way.
# What reads such a text, a model for example, is told the answer before the question.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='["1. Ask Ann","2. Write it down","3. Send it"] by position
["3. Send it","2. Write it down","1. Ask Ann"] as raw text'
npm install --silent --no-fund --no-audit pdf2json@4.0.3 >/dev/null 2>&1
cat >lines.mjs <<'JS'
import { writeFileSync } from "node:fs";
import PDFParser from "pdf2json";

const content = "BT /F1 12 Tf 20 250 Td (1. Ask Ann) Tj 0 -20 Td (2. Write it down) Tj 0 -20 Td (3. Send it) Tj ET";
const objects = [
  "<< /Type /Catalog /Pages 2 0 R >>",
  "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
  "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 300] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
  `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
  "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
];
let file = "%PDF-1.4\n";
const at = objects.map((o, i) => {
  const start = file.length;
  file += `${i + 1} 0 obj\n${o}\nendobj\n`;
  return `${String(start).padStart(10, "0")} 00000 n \n`;
});
const table = file.length;
file += `xref\n0 6\n0000000000 65535 f \n${at.join("")}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n${table}\n%%EOF\n`;
writeFileSync("lines.pdf", file);

const parser = new PDFParser(null, true);
parser.on("pdfParser_dataReady", (data) => {
  const texts = data.Pages[0].Texts.toSorted((a, b) => a.y - b.y || a.x - b.x);
  const lines = new Map();
  for (const t of texts) lines.set(t.y, `${lines.get(t.y) ?? ""} ${decodeURIComponent(t.R[0].T)}`.trim());
  console.log(`${JSON.stringify([...lines.values()])} by position`);
  const raw = parser.getRawTextContent().split(/\r?\n/).filter((l) => l && !l.startsWith("---"));
  console.log(`${JSON.stringify(raw.map((l) => l.trim()))} as raw text`);
});
parser.loadPDF("lines.pdf");
JS
got=$(node lines.mjs 2>/dev/null | grep '^\[')
echo "$got"
[ "$got" = "$want" ]
