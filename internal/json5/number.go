package json5

import "math/big"

// number reads a number and returns its JSON form; Infinity and NaN are
// returned as they are, with their sign.
func (s *scanner) number() string {
	sign := ""
	switch s.peek(0) {
	case '-':
		sign = "-"
		fallthrough
	case '+':
		s.pos++
	}
	switch c := s.peek(0); {
	case c == 'I' || c == 'N':
		at := s.pos
		switch word := s.ident(); word {
		case "Infinity":
			return sign + word
		case "NaN":
			return word
		default:
			s.fail(at, "%q is no number", word)
		}
	case c == '0' && (s.peek(1) == 'x' || s.peek(1) == 'X'):
		return sign + s.hexNumber()
	}
	return sign + s.decimal()
}

// decimal reads a decimal number without its sign.
func (s *scanner) decimal() string {
	start := s.pos
	whole, frac, exp := s.digits(), "", ""
	if len(whole) > 1 && whole[0] == '0' {
		s.fail(start, "a number does not begin with 0")
	}
	if s.peek(0) == '.' {
		s.pos++
		frac = s.digits()
	}
	if whole == "" && frac == "" {
		s.fail(start, "want a number here")
	}
	if lower(s.peek(0)) == 'e' {
		s.pos++
		exp = "e"
		if c := s.peek(0); c == '+' || c == '-' {
			exp += string(c)
			s.pos++
		}
		d := s.digits()
		if d == "" {
			s.fail(s.pos, "want the digits of the exponent here")
		}
		exp += d
	}
	if r, _ := s.rune(); isIdentStart(r) || r == '.' {
		s.fail(s.pos, "%q cannot follow a number", r)
	}
	if whole == "" {
		whole = "0"
	}
	if frac != "" {
		frac = "." + frac
	}
	return whole + frac + exp
}

// digits reads decimal digits, maybe none.
func (s *scanner) digits() string {
	start := s.pos
	for c := s.peek(0); c >= '0' && c <= '9'; c = s.peek(0) {
		s.pos++
	}
	return string(s.src[start:s.pos])
}

// hexNumber reads 0x… and returns it in decimal.
func (s *scanner) hexNumber() string {
	start := s.pos
	s.pos += 2
	for hexDigit(s.peek(0)) >= 0 {
		s.pos++
	}
	digits := string(s.src[start+2 : s.pos])
	if digits == "" || len(digits) > 256 {
		s.fail(start+2, "want 1 to 256 hexadecimal digits here")
	}
	v, _ := new(big.Int).SetString(digits, 16)
	if r, _ := s.rune(); isIdentPart(r) {
		s.fail(s.pos, "%q cannot follow a number", r)
	}
	return v.String()
}
