package skill

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Severity is how bad a Finding is.
type Severity string

// The severities.
const (
	Info     Severity = "info"     // to know
	Warn     Severity = "warn"     // to look at before the skill is used
	Critical Severity = "critical" // the skill is not installed without being told to
)

// Finding is something in a skill that a person should look at.
type Finding struct {
	Rule     string   `json:"rule"` // the name of the rule, such as "pipe-to-shell"
	Severity Severity `json:"severity"`
	File     string   `json:"file"`           // with slashes, below the folder of the skill
	Line     int      `json:"line,omitempty"` // from 1; 0: the whole file
	Text     string   `json:"text"`           // what it is, with the beginning of the line
}

// String returns the finding on one line.
func (f Finding) String() string {
	at := f.File
	if f.Line > 0 {
		at = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	return fmt.Sprintf("%s: %s: %s", f.Severity, at, f.Text)
}

// Worst returns the highest severity of findings; "": there are none.
func Worst(findings []Finding) Severity {
	worst := Severity("")
	for _, f := range findings {
		if rank(f.Severity) > rank(worst) {
			worst = f.Severity
		}
	}
	return worst
}

func rank(s Severity) int { return slices.Index([]Severity{"", Info, Warn, Critical}, s) }

// Limits of Scan.
const (
	maxScanFiles    = 2000     // files that are read
	maxScanBytes    = 16 << 20 // bytes that are read of all files
	maxScanFile     = 1 << 20  // bytes that are read of a file
	maxFindings     = 200      // of a severity
	maxSame         = 3        // findings of a rule and a severity in a file
	maxLogical      = 8 << 10  // bytes of lines that belong together
	maxExcerpt      = 120      // characters of a line in a finding
	near            = 10       // lines between reading a secret and sending something
	maxHiddenInText = 7        // tag characters of a flag
)

// Scan looks for what a skill should not have: pipes from the network to a shell,
// credentials that are sent away, hidden characters, instructions to ignore others or to
// hide something from the person, encoded programs, changes of startup files and of
// Chela's own settings, and programs that cannot be read. Findings are sorted, the worst
// first. It helps a person to decide, and proves nothing: what it does not find may be
// there.
func Scan(fsys fs.FS) ([]Finding, error) {
	s := scanner{left: maxScanBytes}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("scan %s: %w", name, err)
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			s.file = name
			s.add("irregular-file", Critical, 0, "it is neither a file nor a folder", "")
			return nil
		case s.files >= maxScanFiles || s.left <= 0:
			s.file = name
			s.add("not-scanned", Critical, 0, "it and the files after it were not scanned, because the skill is too large", "")
			return fs.SkipAll
		}
		s.files++
		return s.scan(fsys, name)
	})
	slices.SortStableFunc(s.found, func(a, b Finding) int {
		return cmp.Or(rank(b.Severity)-rank(a.Severity), strings.Compare(a.File, b.File), a.Line-b.Line)
	})
	return s.found, err
}

// ScanText is Scan for the text of one file.
func ScanText(name string, text []byte) []Finding {
	s := scanner{file: name}
	s.text(text)
	return s.found
}

// scanner is the state of a scan.
type scanner struct {
	files int
	left  int64
	file  string           // being scanned
	same  map[kind]int     // findings in it
	count map[Severity]int // findings
	found []Finding
}

// kind is what findings have in common. Many harmless ones must not hide a critical one.
type kind struct {
	rule     string
	severity Severity
}

// add adds a finding.
func (s *scanner) add(rule string, v Severity, line int, text, excerpt string) {
	if s.same == nil {
		s.same = map[kind]int{}
	}
	if s.count == nil {
		s.count = map[Severity]int{}
	}
	k := kind{rule, v}
	if s.same[k]++; s.same[k] > maxSame || s.count[v] >= maxFindings {
		return
	}
	s.count[v]++
	if excerpt != "" {
		text += ": " + OneLine(excerpt, maxExcerpt)
	}
	s.found = append(s.found, Finding{Rule: rule, Severity: v, File: s.file, Line: line, Text: text})
}

// scan scans a file.
func (s *scanner) scan(fsys fs.FS, name string) error {
	f, err := fsys.Open(name)
	if err != nil {
		return fmt.Errorf("scan %s: %w", name, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, min(s.left, maxScanFile)+1))
	if err != nil {
		return fmt.Errorf("scan %s: %w", name, err)
	}
	s.left -= int64(len(text))
	s.file, s.same = name, nil
	what, v := binaryKind(text)
	if what != "" {
		s.add("binary", v, 0, what, "")
	}
	if v == Critical {
		return nil
	}
	readable := isText(text)
	if len(text) > maxScanFile {
		v := Warn
		if readable {
			v = Critical
		}
		s.add("not-scanned", v, 0, fmt.Sprintf("only the first %s were scanned", humanize.Bytes(maxScanFile)), "")
	}
	if readable {
		s.text(text)
	} else { // a program whose beginning looks like a picture is still one for a shell
		s.lines(text, false)
	}
	return nil
}

// isText reports whether the beginning of a file is text.
func isText(b []byte) bool {
	head := b[:min(len(b), 8<<10)]
	for i := 1; i < utf8.UTFMax && len(head) < len(b) && !utf8.Valid(head); i++ { // it may be cut in a character
		head = head[:len(head)-1]
	}
	return utf8.Valid(head) && bytes.IndexByte(head, 0) < 0
}

// binaryKind says what a file that is not text is; "": it is text or harmless.
func binaryKind(b []byte) (string, Severity) {
	for _, k := range [...]struct {
		magic, kind string
		severity    Severity
	}{
		{"\x7fELF", "a program for Linux, which cannot be read", Critical},
		{"MZ\x90\x00", "a program for Windows, which cannot be read", Critical},
		{"\xfe\xed\xfa\xce", "a program for macOS, which cannot be read", Critical},
		{"\xfe\xed\xfa\xcf", "a program for macOS, which cannot be read", Critical},
		{"\xcf\xfa\xed\xfe", "a program for macOS, which cannot be read", Critical},
		{"\xca\xfe\xba\xbe", "a program (Java or macOS), which cannot be read", Critical},
		{"\x00asm", "a WebAssembly program, which cannot be read", Critical},
		{"!<arch>\n", "a library, which cannot be read", Critical},
		{"PK\x03\x04", "an archive, whose content is not scanned", Warn},
		{"\x1f\x8b", "an archive, whose content is not scanned", Warn},
		{"BZh", "an archive, whose content is not scanned", Warn},
		{"\xfd7zXZ", "an archive, whose content is not scanned", Warn},
		{"7z\xbc\xaf", "an archive, whose content is not scanned", Warn},
		{"\x28\xb5\x2f\xfd", "an archive, whose content is not scanned", Warn},
		{"\x00\x01\x00\x00", "", ""}, {"OTTO", "", ""}, {"\x89PNG", "", ""}, {"\xff\xd8\xff", "", ""}, {"GIF8", "", ""},
		{"RIFF", "", ""}, {"OggS", "", ""}, {"wOF2", "", ""}, {"wOFF", "", ""},
		{"%PDF", "a PDF document, whose content is not scanned", Info},
	} {
		if bytes.HasPrefix(b, []byte(k.magic)) {
			if k.kind == "" { // a picture, a recording or a font
				return "a picture, recording or font", Info
			}
			return k.kind, k.severity
		}
	}
	head := b[:min(len(b), 8<<10)]
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return "a text in UTF-16, which is not scanned", Critical
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return "a file that is not text", Warn
	}
	return "", ""
}

// rule is a pattern that a line should not have.
type rule struct {
	name     string
	severity Severity
	what     string
	words    []string // in lower case; a line without any of them does not match
	pattern  *regexp.Regexp
}

// matches reports whether a line matches, and where. lower is the line in lower case.
func (r rule) matches(line, lower string) (at int, ok bool) {
	if !slices.ContainsFunc(r.words, func(w string) bool { return strings.Contains(lower, w) }) {
		return 0, false
	}
	m := r.pattern.FindStringIndex(line)
	if m == nil {
		return 0, false
	}
	return m[0], true
}

// pipeToShell is the rule about what comes from the network.
const pipeToShell = "pipe-to-shell"

// Parts of patterns.
const (
	fetcher  = `(?:curl|wget|fetch|aria2c|lwp-download|iwr|irm|invoke-webrequest|invoke-restmethod)\b`
	shells   = `(?:(?:ba|z|da|k|c|tc|fi|a)?sh|python[0-9.]*|perl|ruby|node|bun|deno|php|pwsh|powershell|iex|invoke-expression|osascript|source)\b`
	decoder  = `(?:base64\s+(?:-[a-z]*d\b|--decode|-D\b)|base32\s+(?:-d\b|--decode)|xxd\s+-[a-z]*r|openssl\s+(?:enc\s+-[a-z]*d|base64\s+-d)|uudecode|gunzip|zcat|rev\b|tr\s)`
	startups = `(?:\.(?:bash_?rc|bash_profile|bash_login|bash_logout|profile|zshrc|zshenv|zprofile|zlogin|kshrc|xinitrc|xprofile|vimrc|tmux\.conf)\b|config\.fish|/etc/profile|/etc/cron|/etc/rc\.local|/etc/ld\.so\.preload|/etc/sudoers|launchagents|launchdaemons|systemd/(?:user|system)|\.config/autostart|\.ssh/(?:authorized_keys|config|rc)\b|\.git/hooks|\.gitconfig|\.npmrc|\.pypirc|currentversion\\+run|sitecustomize\.py)`
	writes   = `(?:>>?|\btee\b|\bcp\b|\bmv\b|\bln\b|\binstall\b|\bsed\s+-i|\bappend\b|\badd\b|\bwrite\b|\bedit\b|\binsert\b|\bopen\([^)]*['"][wa]|writefile|add-content|set-content|out-file)`
	own      = `(?:chela\.json5?|openclaw\.json|chela\.db|approvals\.json|exec-approvals\.json|\.chela/(?:credentials|plugins|hooks|skills)|\.openclaw/(?:credentials|hooks|extensions))`
	secrets  = `(?:\.ssh/(?:id_|[^\s]*\bkey)|\bid_(?:rsa|ed25519|ecdsa|dsa)\b|\.aws/credentials|\.config/gcloud|\.kube/config|\.docker/config\.json|\.netrc\b|\.git-credentials|\.gnupg\b|/etc/shadow|login\.keychain|find-(?:generic|internet)-password|security\s+dump-keychain|cookies\.sqlite|logins\.json|login data|wallet\.dat|\.chela/credentials|\.openclaw/credentials|secretservice|secret-tool\s+lookup|/proc/[^\s/]+/environ|169\.254\.169\.254)`
	dumps    = `(?:\bprintenv\b|(?:^|[|;&$(]\s*)env\s*[|>]|\bexport\s+-p\b|\bdeclare\s+-x\b|\bset\s*\||dict\(os\.environ\)|json\.dumps\((?:dict\()?os\.environ|json\.stringify\(process\.env\)|get-childitem\s+env:|(?:cat|source|read|open\()\s*['"]?[~\w./-]*\.env(?:[^.\w]|$))`
	sends    = `(?:\bcurl\b[^\n]*(?:\s-(?:d|F|T)\b|--data|--form|--upload-file|\s-X\s*(?:POST|PUT)|@-|\$\()|\bwget\b[^\n]*--(?:post|body)|\b(?:nc|ncat|netcat|socat)\s|/dev/tcp/|requests\.(?:post|put)|urlopen\(|http\.client|axios\.|fetch\(\s*['"]http|xmlhttprequest|\bscp\s|\brsync\s[^\n]*:|sendmail|\bmail\s+-s|nslookup\s+[^\n]*\$|\bdig\s+[^\n]*\$|invoke-(?:webrequest|restmethod)[^\n]*(?:-method\s+(?:post|put)|-body))`
)

// scanRules are the rules for single lines, and the two halves of one for several.
var scanRules = sync.OnceValue(func() (r struct {
	lines        []rule
	reads, sends rule
}) {
	re := func(p string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + p) }
	fetchers := strings.Fields("curl wget fetch aria2c lwp-download iwr irm invoke-")
	r.lines = []rule{
		{pipeToShell, Critical, "runs what comes from the network", fetchers,
			re(fetcher + `[^\n]*\|\s*(?:\\?\s*)?(?:sudo\s+(?:-\S+\s+)*)?(?:env\s+)?(?:/\S*/)?` + shells)},
		{pipeToShell, Critical, "runs what comes from the network", fetchers,
			re(shells + `\s+(?:-\w+\s+)*(?:<\(|["']?\$\(|["']?` + "`" + `)\s*` + fetcher)},
		{pipeToShell, Critical, "runs what comes from the network", fetchers,
			re(`(?:\beval|(?:^|[\s;&|])\.)\s+(?:<\(|["']?\$\(|["']?` + "`" + `)\s*` + fetcher)},
		{pipeToShell, Critical, "runs what comes from the network", strings.Fields("urlopen requests.get httpx.get fetch"),
			re(`\b(?:exec|eval|compile|execsync|new function)\s*\(\s*(?:await\s+)?(?:\(?\s*await\s+)?(?:urllib\S*urlopen|urlopen|requests\.get|httpx\.get|fetch)\s*\(`)},
		{pipeToShell, Critical, "runs what comes from the network", strings.Fields("iex invoke-expression"),
			re(`\b(?:iex|invoke-expression)\b[^\n]*(?:downloadstring|webclient|invoke-webrequest|\biwr\b|\birm\b)`)},
		{"download-and-run", Critical, "runs a file that it downloads", fetchers,
			re(fetcher + `[^\n]*(?:&&|;)\s*(?:sudo\s+)?(?:chmod\s+[^\n]*[+0-7]x?[^\n]*(?:&&|;)|` + shells + `\s+\S|\./)`)},
		{"encoded-program", Critical, "runs an encoded program", strings.Fields("|"),
			re(decoder + `[^\n]*\|\s*(?:sudo\s+)?(?:/\S*/)?` + shells)},
		{"encoded-program", Critical, "runs an encoded program",
			strings.Fields("atob( b64decode b32decode unhexlify fromhex frombase64string buffer.from decompress codecs.decode marshal.loads"), re(`\b(?:eval|exec|execsync|compile|new function|loads)\s*\([^\n]{0,80}(?:atob\(|b64decode|b32decode|unhexlify|bytes\.fromhex|frombase64string|buffer\.from\([^\n]*base64|zlib\.decompress|codecs\.decode|marshal\.loads)`)},
		{"encoded-program", Critical, "runs an encoded program", strings.Fields("powershell pwsh"),
			re(`\b(?:powershell|pwsh)\b[^\n]*\s-e(?:nc|ncodedcommand)?\s+[a-z0-9+/=]{16}`)},
		{"encoded-program", Critical, "runs an encoded program", strings.Fields("eval -c"),
			re(`\b(?:eval|(?:ba|z|da)?sh\s+-c)\s+["']?(?:\$\(|` + "`" + `)[^\n]*` + decoder)},
		{"ignore-instructions", Critical, "asks to ignore other instructions",
			strings.Fields("instruction prompt rules guidelines guardrails polic restrictions constraints"),
			re(`\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{0,40}\b(?:previous|prior|above|earlier|preceding|existing|other|system|developer|safety|all)\b[^.\n]{0,30}\b(?:instructions?|prompts?|rules|guidelines|guardrails|polic(?:y|ies)|restrictions|constraints)\b`)},
		{"ignore-instructions", Critical, "asks to ignore other instructions", strings.Fields("指令 指示 提示 规则 規則 要求"),
			re(`(?:忽略|无视|無視|忘记|忘記|不要遵守)[^。\n]{0,12}(?:之前|以上|先前|前面|上述|所有|系统|系統)[^。\n]{0,8}(?:指令|指示|提示|规则|規則|要求)`)},
		{"hide-from-person", Critical, "asks to hide something from the person",
			strings.Fields("user person human owner operator"),
			re(`\b(?:do not|don['’]t|never|without)\s+(?:\w+\s+){0,2}(?:tell(?:ing)?|inform(?:ing)?|mention(?:ing)?|show(?:ing)?|reveal(?:ing)?|disclos(?:e|ing)|alert(?:ing)?|notify(?:ing)?|report(?:ing)?)\b[^.\n]{0,30}\b(?:the\s+)?(?:user|person|human|owner|operator)\b`)},
		{"hide-from-person", Critical, "asks to hide something from the person",
			strings.Fields("user person human owner operator"),
			re(`\b(?:hide|conceal|keep)\b[^.\n]{0,40}\b(?:secret\s+)?from\s+(?:the\s+)?(?:user|person|human|owner|operator)\b|\bwithout\s+(?:the\s+)?(?:user|person|owner)['’]?s?\s+(?:knowledge|consent|knowing|noticing)`)},
		{"hide-from-person", Critical, "asks to hide something from the person", strings.Fields("用户 用戶 使用者 主人 对方"),
			re(`(?:不要|别|勿|不得|禁止)(?:告诉|告訴|通知|让|讓|提示|透露给|透露給)(?:用户|用戶|使用者|主人|对方)`)},
		{"skip-approval", Critical, "asks to go around approvals", strings.Fields("approv confirmation permission sandbox"),
			re(`\b(?:without|skip|bypass|disable|avoid|auto-?approve)\b[^.\n]{0,30}\b(?:approvals?|confirmation|permission prompts?|sandbox(?:ing)?)\b`)},
		{"startup-file", Critical, "changes what runs when a person logs in or a program starts",
			strings.Fields(".bash .profile .z .kshrc .xinitrc .xprofile .vimrc tmux.conf config.fish /etc/ launch systemd autostart .ssh/ .git .npmrc .pypirc currentversion sitecustomize"), re(writes + `[^\n]*` + startups)},
		{"startup-file", Critical, "changes what runs by itself", strings.Fields("crontab schtasks launchctl systemctl now"),
			re(`\bcrontab\s+(?:-(?:\s|$)|[^-\s\n])|\|\s*crontab\b|\bschtasks\s+/create|\blaunchctl\s+(?:load|bootstrap)|\bsystemctl\s+(?:--user\s+)?enable|\bat\s+now\b`)},
		{"own-settings", Critical, "changes Chela's own settings", strings.Fields("chela openclaw"),
			re(`\b(?:chela|openclaw)\s+(?:config\s+(?:set|unset|edit)|plugins\s+(?:install|enable)|hooks\s+(?:install|enable)|approvals\s|pairing\s+approve|devices\s+approve|exec-policy|skills\s+install[^\n]*--force)`)},
		{"own-settings", Critical, "changes Chela's own settings", strings.Fields("chela openclaw approvals.json"),
			re(writes + `[^\n]*` + own)},
		{"own-settings", Warn, "names files of Chela that it has no need of",
			strings.Fields("chela openclaw approvals.json"), re(own)},
		{"destroys", Critical, "deletes everything", strings.Fields("rm mkfs. of=/dev"),
			re(`\brm\s+(?:-\w+\s+)*-\w*(?:rf|fr)\w*\s+(?:--no-preserve-root\s+)?["']?(?:/|~|\$HOME)["']?/?\*?(?:\s|$|[;&|])|\bmkfs\.|\bdd\s+[^\n]*of=/dev/(?:sd|nvme|disk|vd|hd)`)},
		{"superuser", Warn, "asks for the rights of the superuser", strings.Fields("sudo doas pkexec chmod"),
			re(`(?:^|[\s;&|(` + "`" + `])(?:sudo|doas|pkexec)\s|\bchmod\s+(?:-R\s+)?(?:0?777|[ugoa]*\+s)\b`)},
		{"pastes-command", Warn, "asks the person to run a command", strings.Fields("terminal shell prompt console"),
			re(`\b(?:copy|paste|run|execute)\b[^.\n]{0,40}\b(?:in|into|to)\s+(?:your|a|the)\s+(?:terminal|shell|command prompt|powershell|console)\b`)},
	}
	r.reads = rule{
		"secrets", Warn, "reads credentials or all variables",
		strings.Fields(".ssh id_ credentials gcloud .kube .docker .netrc .gnupg shadow keychain password cookies logins login wallet secret /proc/ 169.254 env export declare set"),
		re(secrets + `|` + dumps),
	}
	r.sends = rule{
		words:   strings.Fields("curl wget nc ncat netcat socat /dev/tcp requests. urlopen http.client axios fetch xmlhttprequest scp rsync mail nslookup dig invoke-"),
		pattern: re(sends),
	}
	return r
})

// text scans a text.
func (s *scanner) text(b []byte) {
	if !utf8.Valid(b) {
		s.add("not-text", Warn, 0, "it is not valid UTF-8", "")
	}
	s.hidden(b)
	s.lines(b, true)
}

// lines looks at the lines of a text, or of a file that may have some.
func (s *scanner) lines(b []byte, text bool) {
	rules := scanRules()
	read, sent := 0, 0 // the last lines that read a secret and that send something
	for number, line := range logicalLines(b) {
		if isRow(line) {
			line = cells(line)
		}
		lower := strings.ToLower(line)
		for _, r := range rules.lines {
			if at, ok := r.matches(line, lower); ok {
				s.add(r.name, r.severity, number, r.what, line[lineStart(line, at):])
			}
		}
		if text && encoded(line) {
			s.add("encoded-data", Warn, number, "has a long encoded text", line)
		}
		if at, ok := rules.reads.matches(line, lower); ok {
			read = number
			s.add(rules.reads.name, rules.reads.severity, number, rules.reads.what, line[lineStart(line, at):])
		}
		if _, ok := rules.sends.matches(line, lower); ok {
			sent = number
		}
		if read > 0 && sent > 0 && max(read, sent)-min(read, sent) <= near {
			s.add("sends-secrets", Critical, number,
				fmt.Sprintf("reads credentials or all variables (line %d) and sends something (line %d)", read, sent), line)
			read, sent = 0, 0
		}
	}
}

// isRow reports whether a line is the row of a table.
func isRow(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "|") && strings.HasSuffix(line, "|")
}

// cells returns the row of a table with a line for each cell. A pipe in code, or after a
// backslash, belongs to the cell.
func cells(row string) string {
	out, code := []byte(row), false
	for i := range out {
		switch {
		case out[i] == '`':
			code = !code
		case out[i] == '|' && !code && (i == 0 || out[i-1] != '\\'):
			out[i] = '\n'
		}
	}
	return string(out)
}

// minEncoded is the length from which on a text without spaces counts as encoded.
const minEncoded = 240

// encoded reports whether a line has a long text in Base64 or in hexadecimal escapes.
func encoded(line string) bool {
	if len(line) < minEncoded {
		return false
	}
	n := 0
	for i := range len(line) {
		c := line[i]
		if isAlnum(c) || c == '+' || c == '/' || c == '\\' {
			if n++; n >= minEncoded {
				return true
			}
			continue
		}
		n = 0
	}
	return false
}

func isAlnum(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }

// lineStart returns a position at most 40 bytes before at, at the beginning of a
// character.
func lineStart(line string, at int) int {
	at = max(0, at-40)
	for at > 0 && !utf8.RuneStart(line[at]) {
		at--
	}
	return at
}

// logicalLines returns the lines of a text with their numbers, without hidden
// characters. Lines that go on, after a backslash or a pipe, are joined.
func logicalLines(b []byte) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		first, joined := 0, ""
		number := 0
		for raw := range bytes.Lines(b) {
			number++
			for len(raw) > 0 { // a line without end is looked at in overlapping pieces
				piece := raw[:min(len(raw), maxLogical)]
				if len(raw) > maxLogical {
					raw = raw[maxLogical-maxLogical/8:]
				} else {
					raw = nil
				}
				line := strings.Map(visible, string(piece))
				line = strings.TrimRight(line, " \t\r\n")
				begins := strings.HasPrefix(strings.TrimSpace(line), "|") && !strings.HasSuffix(line, "|") // not the row of a table
				if joined != "" && !begins && !goesOn(joined) || len(joined)+len(line) > maxLogical {
					if joined != "" && !yield(first, joined) {
						return
					}
					joined = ""
				}
				if joined == "" {
					first, joined = number, line
				} else {
					joined = strings.TrimSuffix(joined, "\\") + " " + line
				}
			}
		}
		if joined != "" {
			yield(first, joined)
		}
	}
}

// goesOn reports whether a command continues on the next line.
func goesOn(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasSuffix(line, `\`) || strings.HasSuffix(line, "&&") ||
		strings.HasSuffix(line, "|") && !strings.HasPrefix(line, "|")
}

// visible removes hidden characters, and makes all white space plain.
func visible(r rune) rune {
	switch {
	case isHidden(r):
		return -1
	case r != '\n' && unicode.IsSpace(r):
		return ' '
	}
	return r
}

// isHidden reports whether a character is not shown.
func isHidden(r rune) bool {
	switch {
	case r == '\u00ad', r == '\u034f', r == '\u061c', r == '\u115f', r == '\u1160', r == '\u17b4', r == '\u17b5',
		r == '\u180e', r == '\u3164', r == '\uffa0', r == '\ufeff':
		return true
	case r >= '\u200b' && r <= '\u200f', r >= '\u202a' && r <= '\u202e', r >= '\u2060' && r <= '\u206f', r >= 0xe0000 &&
		r <= 0xe0fff, r >= 0xfff0 && r <= 0xfffb:
		return true
	}
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' && r != '\f' || r >= 0x7f && r < 0xa0
}

// hidden finds characters that are not shown.
func (s *scanner) hidden(b []byte) {
	text, line := []rune(string(b)), 1
	for i := 0; i < len(text); i++ {
		r := text[i]
		switch {
		case r == '\n':
			line++
		case !isHidden(r) || r == '\ufeff' && i == 0:
		case r >= 0xe0000 && r < 0xe0100:
			n := tags(text[i:])
			if flag := i > 0 && text[i-1] == 0x1f3f4; !flag || n > maxHiddenInText {
				s.add("hidden-characters", Critical, line, humanize.Many(n, "tag character")+
					", which a person cannot see and a model can read", "")
			}
			i += n - 1
		case r == '\u200d' || r == '\u200c': // joiners belong to emoji and to some scripts
			if !joins(text, i) {
				s.add("hidden-characters", Warn, line, fmt.Sprintf("a character that is not shown (U+%04X)", r), "")
			}
		case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
			s.add("hidden-characters", Critical, line,
				fmt.Sprintf("a character that changes the direction of the text (U+%04X)", r), "")
		case r == '\u200e', r == '\u200f', r == '\u061c', r == '\u00ad':
			s.add("hidden-characters", Info, line, fmt.Sprintf("a character that is not shown (U+%04X)", r), "")
		case r == '\x1b':
			s.add("hidden-characters", Critical, line, "a control character for terminals (ESC)", "")
		default:
			s.add("hidden-characters", Warn, line, fmt.Sprintf("a character that is not shown (U+%04X)", r), "")
		}
	}
}

// tags returns the number of tag characters at the beginning of a text.
func tags(text []rune) int {
	n := slices.IndexFunc(text, func(r rune) bool { return r < 0xe0000 || r >= 0xe0100 })
	if n < 0 {
		return len(text)
	}
	return n
}

// joins reports whether the joiner at i is between characters that are joined.
func joins(text []rune, i int) bool {
	joinable := func(r rune) bool { return r > 0x2ff && !isHidden(r) && !unicode.IsSpace(r) }
	return i > 0 && i+1 < len(text) && joinable(text[i-1]) && joinable(text[i+1])
}
