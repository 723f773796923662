package json5

import (
	"cmp"
	"math/big"
	"strings"
)

// number reads a number and returns its JSON form. Infinity and NaN are
// returned as they are, with their sign.
func (s *scanner) number() string {
	sign := ""
	if c := s.peek(0); c == '-' || c == '+' {
		sign = strings.Trim(string(c), "+")
		s.pos++
	}
	var digits string
	switch c := s.peek(0); {
	case c == 'I' || c == 'N':
		at := s.pos
		switch word := s.ident(); word {
		case "Infinity":
			return sign + word
		case "NaN":
			return word
		default:
			s.fail(at, "%q is not a number", word)
		}
	case c == '0' && (s.peek(1) == 'x' || s.peek(1) == 'X'):
		digits = s.hexNumber()
	default:
		digits = s.decimal()
	}
	if r, _ := s.rune(); isIdentPart(r) || r == '.' {
		s.fail(s.pos, "%q cannot follow a number", r)
	}
	return sign + digits
}

// decimal reads a decimal number without its sign.
func (s *scanner) decimal() string {
	start := s.pos
	whole, frac, exp := s.run(decimals), "", ""
	if len(whole) > 1 && whole[0] == '0' {
		s.fail(start, "a number cannot begin with 0")
	}
	if s.peek(0) == '.' {
		s.pos++
		frac = s.run(decimals)
	}
	if whole == "" && frac == "" {
		s.fail(start, "want a number here")
	}
	if c := s.peek(0); c == 'e' || c == 'E' {
		s.pos++
		at := s.pos
		if c := s.peek(0); c == '+' || c == '-' {
			s.pos++
		}
		if s.run(decimals) == "" {
			s.fail(s.pos, "want the digits of the exponent here")
		}
		exp = "e" + string(s.src[at:s.pos])
	}
	if frac != "" {
		frac = "." + frac
	}
	return cmp.Or(whole, "0") + frac + exp
}

// hexNumber reads a hexadecimal number and returns it in decimal.
func (s *scanner) hexNumber() string {
	s.pos += 2
	start := s.pos
	digits := s.run(decimals + "abcdefABCDEF")
	if digits == "" || len(digits) > 256 {
		s.fail(start, "want 1 to 256 hexadecimal digits here")
	}
	v, _ := new(big.Int).SetString(digits, 16)
	return v.String()
}

const decimals = "0123456789"

// run reads bytes of a set. The result may be empty.
func (s *scanner) run(set string) string {
	start := s.pos
	for s.pos < len(s.src) && strings.IndexByte(set, s.src[s.pos]) >= 0 {
		s.pos++
	}
	return string(s.src[start:s.pos])
}
