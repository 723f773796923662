package email

import (
	"regexp"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	maxQuote = 2000 // bytes
	maxLines = 20_000
)

var (
	originalMark = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^\s*-{2,}\s*(original message|urspr[uü]ngliche nachricht|original[- ]?nachricht|message d'origine|message original|mensaje original|oorspronkelijk bericht|messaggio originale|mensagem original|原始邮件|邮件原件)\s*-{2,}\s*$`)
	})
	forwardMark = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^\s*(-{2,}\s*(forwarded message|weitergeleitete nachricht|message transf[eé]r[eé]|mensaje reenviado|doorgestuurd bericht|messaggio inoltrato|mensagem encaminhada|转发的邮件|转发邮件信息)\s*-{2,}|begin forwarded message:|anfang der weitergeleiteten nachricht:|d[eé]but du message transf[eé]r[eé] ?:)\s*$`)
	})
	headFrom = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^[\s*]*(from|von|de|da|van|från|fra|发件人)\s?[:：]`)
	})
	headOther = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^[\s*]*(sent|date|to|cc|subject|gesendet|datum|an|betreff|envoy[eé]|[àa]|objet|enviado|fecha|para|asunto|data|oggetto|verzonden|aan|onderwerp|发送时间|收件人|主题|抄送)\s?[:：]`)
	})
	forwardTitle = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^\s*(fwd?|wg|tr|rv|enc|i|doorst|转发)\s*[:：]`)
	})
	introduction = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*(On|Am|Le|El|Il|Em|Op|Den|På|W dniu|Dne|在|于)\s`)
	})
	replyTitle = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^\s*(re|aw|sv|vs|antw|odp|r|rif|回复|答复)(\[\d+\])?\s*[:：]`)
	})
)

// said is what the author of a mail wrote.
type said struct {
	text      string
	quote     string // what another mail said, to which this one is a reply
	forwarded string // the author of the mail that was forwarded without a word
}

// divide separates what somebody wrote from what their mail quotes. Only in a reply
// quotations are removed. A mail that was forwarded stays: it is what the sender wants to
// show.
func divide(s, subject string, reply bool) said {
	lines := strings.SplitN(strings.TrimRight(s, " \t\n"), "\n", maxLines)
	forward := forwardTitle().MatchString(subject)
	for i, l := range lines {
		if forwardMark().MatchString(l) || forward && headed(lines[i:]) {
			out := said{text: strings.TrimSpace(s)}
			if own := strings.TrimSpace(strings.Join(lines[:i], "\n")); strings.Trim(own, "_- \n") == "" {
				out.forwarded = author(lines[i:])
			}
			return out
		}
	}
	own, quoted := lines, []string(nil)
	if reply || replyTitle().MatchString(subject) {
		own, quoted = cut(lines)
	}
	for i, l := range own {
		if l == "-- " { // a signature follows
			own = own[:i]
			break
		}
	}
	text := strings.TrimSpace(strings.Join(own, "\n"))
	if text == "" && len(quoted) > 0 {
		return said{text: strings.TrimSpace(s)} // better too much than nothing
	}
	return said{text: text, quote: humanize.TruncateBytes(strings.TrimSpace(strings.Join(quoted, "\n")), maxQuote)}
}

// headed reports whether lines begin with the header of another mail.
func headed(lines []string) bool {
	if !headFrom().MatchString(lines[0]) {
		return false
	}
	n := 0
	for _, l := range lines[1:min(len(lines), 7)] {
		if headOther().MatchString(l) {
			n++
		}
	}
	return n >= 2
}

// author returns the author in the header of another mail.
func author(lines []string) string {
	for _, l := range lines[:min(len(lines), 10)] {
		if headFrom().MatchString(l) {
			_, name, _ := strings.Cut(strings.ReplaceAll(l, "：", ":"), ":")
			return humanize.TruncateBytes(humanize.OneLine(strings.Trim(name, " *")), maxName)
		}
	}
	return ""
}

// cut separates the lines of a reply from those it quotes.
func cut(lines []string) (own, quoted []string) {
	for i := 0; i < len(lines); i++ {
		switch l := lines[i]; {
		case originalMark().MatchString(l):
			return own, append(quoted, lines[i+1:]...)
		case headed(lines[i:]):
			for len(own) > 0 && strings.Trim(own[len(own)-1], "_-=* ") == "" {
				own = own[:len(own)-1]
			}
			return own, append(quoted, lines[i:]...)
		case strings.HasPrefix(l, ">"):
			own = withoutAttribution(own)
			for ; i < len(lines) && (strings.HasPrefix(lines[i], ">") || strings.TrimSpace(lines[i]) == ""); i++ {
				quoted = append(quoted, strings.TrimPrefix(strings.TrimPrefix(lines[i], ">"), " "))
			}
			i--
			if len(own) > 0 {
				own = append(own, "")
			}
		default:
			own = append(own, l)
		}
	}
	return own, quoted
}

// withoutAttribution removes the lines that introduce a quotation, such as "On Monday Ann
// wrote:".
func withoutAttribution(own []string) []string {
	end := len(own)
	for end > 0 && strings.TrimSpace(own[end-1]) == "" {
		end--
	}
	if end == 0 || !strings.HasSuffix(strings.TrimRight(own[end-1], " "), ":") &&
		!strings.HasSuffix(strings.TrimRight(own[end-1], " "), "：") {
		return own
	}
	paragraph := end - 1
	for paragraph > 0 && end-paragraph < 4 && strings.TrimSpace(own[paragraph-1]) != "" {
		paragraph--
	}
	begin := -1
	for i := end - 1; i >= paragraph; i-- {
		if introduction().MatchString(own[i]) {
			begin = i
			break
		}
	}
	for i := end - 1; begin < 0 && i >= paragraph; i-- {
		if strings.ContainsAny(own[i], "0123456789@") {
			begin = i
		}
	}
	if begin < 0 {
		return own
	}
	return own[:begin]
}
