package email

import (
	"errors"
	"fmt"
	"strings"
)

// authenticate returns why a mail is not known to come from the address in its From
// header; nil: the receiving server says that it does.
//
// Servers write what they checked into a header Authentication-Results (RFC 8601), above
// what the sender wrote. A sender may write such a header, too, and a server has to remove
// those with its own id. In case it does not, only the topmost header with the trusted id
// counts: that of the server itself.
//
// The domain of From has to be confirmed by DMARC; or, if the domain has no DMARC policy,
// by a DKIM signature or SPF for a domain of the same organization. A domain vouches for
// all its addresses: that its users cannot write as each other is up to its server.
func authenticate(h header, address, trusted string) error {
	for _, value := range h.all("authentication-results") {
		id, results, ok := parseResults(value)
		if !within(id, trusted) {
			continue
		}
		if !ok {
			return fmt.Errorf("authentication results of %s that cannot be understood", id)
		}
		return judge(results, domainOf(address))
	}
	return fmt.Errorf("no authentication results of %s", trusted)
}

// result is the result of one method.
type result struct {
	method, result string
	props          map[string]string // such as header.from
}

// judge returns why results do not confirm a domain.
func judge(results []result, domain string) error {
	count := map[string]int{}
	for _, r := range results {
		count[r.method]++
	}
	if count["dmarc"] > 1 || count["spf"] > 1 {
		return errors.New("authentication results that contradict each other")
	}
	var dkim, spf bool
	for _, r := range results {
		pass := r.result == "pass"
		switch r.method {
		case "dmarc":
			switch {
			case pass && propDomain(r.props, "header.from") == domain:
				return nil
			case pass:
				return fmt.Errorf("dmarc=pass for another domain than %s", domain)
			case r.result == "fail" || r.result == "reject" || r.result == "quarantine":
				return fmt.Errorf("dmarc=%s for %s", r.result, domain)
			}
		case "dkim":
			dkim = dkim || pass && (aligned(propDomain(r.props, "header.d"), domain) ||
				!hasProp(r.props, "header.d") && aligned(propDomain(r.props, "header.i"), domain))
		case "spf":
			spf = pass && aligned(propDomain(r.props, "smtp.mailfrom"), domain)
		}
	}
	if dkim || spf {
		return nil
	}
	return fmt.Errorf("neither dmarc, dkim nor spf for %s", domain)
}

func hasProp(props map[string]string, key string) bool {
	_, ok := props[key]
	return ok
}

// propDomain returns the domain in a property, which is a domain or an address.
func propDomain(props map[string]string, key string) string {
	v := props[key]
	v = v[strings.LastIndexByte(v, '@')+1:]
	d, err := toASCII(v)
	if err != nil {
		return ""
	}
	return d
}

// aligned reports whether two domains belong to the same organization.
func aligned(a, b string) bool { return a != "" && organization(a) == organization(b) }

// parseResults parses a header Authentication-Results. ok is false if it is malformed.
func parseResults(value string) (id string, results []result, ok bool) {
	words, ok := resultWords(value)
	if len(words) == 0 || words[0].text == "" {
		return "", nil, false
	}
	id = strings.ToLower(words[0].text)
	fresh := false // the next word begins the result of a method
	for _, w := range words[1:] {
		key, v, has := strings.Cut(w.text, "=")
		key = strings.ToLower(key)
		switch {
		case w.separator:
			fresh = true
		case !has: // a version, or "none"
		case fresh:
			method, _, _ := strings.Cut(key, "/") // without the version
			results = append(results, result{method, strings.ToLower(v), map[string]string{}})
			fresh = false
		case len(results) == 0 || hasProp(results[len(results)-1].props, key):
			return id, nil, false
		default:
			results[len(results)-1].props[key] = v
		}
	}
	return id, results, ok
}

// word is a word of a header, or a separator (a semicolon).
type word struct {
	text      string
	separator bool
}

// resultWords divides a value into words and semicolons, without comments. What is quoted
// is part of a word. ok is false if a comment or a quotation does not end.
func resultWords(s string) (words []word, ok bool) {
	var text strings.Builder
	began := false
	end := func() {
		if began {
			words = append(words, word{text: text.String()})
			text.Reset()
			began = false
		}
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t':
			// Spaces around "=" belong to the word.
			rest := strings.TrimLeft(s[i:], " \t")
			if began && (strings.HasPrefix(rest, "=") ||
				strings.Count(text.String(), "=") == 1 && strings.HasSuffix(text.String(), "=")) {
				i = len(s) - len(rest) - 1
				continue
			}
			end()
		case ';':
			end()
			words = append(words, word{separator: true})
		case '(':
			end()
			n, closed := comment(s[i:])
			if !closed {
				return words, false
			}
			i += n - 1
		case '"':
			began = true
			n, quoted, closed := quotation(s[i:])
			if !closed {
				return words, false
			}
			text.WriteString(quoted)
			i += n - 1
		default:
			began = true
			text.WriteByte(c)
		}
	}
	end()
	return words, true
}

// comment returns the length of the comment at the beginning of s.
func comment(s string) (n int, closed bool) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(s), false
}

// quotation returns the length and the content of the quoted string at the beginning of s.
func quotation(s string) (n int, text string, closed bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i++; i < len(s) {
				b.WriteByte(s[i])
			}
		case '"':
			return i + 1, b.String(), true
		default:
			b.WriteByte(s[i])
		}
	}
	return len(s), b.String(), false
}
