package offline

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// calculate returns the value of an expression of + - * / % ^ and brackets.
func calculate(s string) (string, error) {
	s = strings.NewReplacer("×", "*", "x", "*", "X", "*", "÷", "/", "（", "(", "）", ")", "**", "^", "−", "-", ",", "",
		"percent of", "%*", "% of", "%*", "times", "*", "multiplied by", "*", "divided by", "/", "plus", "+", "minus", "-",
		"加上", "+", "加", "+", "减去", "-", "减", "-", "乘以", "*", "乘", "*", "除以", "/").Replace(s)
	c := &calculator{rest: strings.Join(strings.Fields(s), "")}
	v := c.sum(0)
	if c.err == nil && c.rest != "" {
		c.err = errors.New("I do not understand " + strconv.Quote(c.rest))
	}
	if c.err == nil && (math.IsInf(v, 0) || math.IsNaN(v)) {
		c.err = errors.New("the result is no number")
	}
	if c.err != nil {
		return "", c.err
	}
	return strconv.FormatFloat(math.Round(v*1e10)/1e10, 'f', -1, 64), nil
}

// calculator reads an expression from the left.
type calculator struct {
	rest string
	err  error
}

func (c *calculator) take(chars string) byte {
	if c.rest == "" || strings.IndexByte(chars, c.rest[0]) < 0 {
		return 0
	}
	b := c.rest[0]
	c.rest = c.rest[1:]
	return b
}

func (c *calculator) sum(depth int) float64 {
	v := c.product(depth)
	for {
		switch c.take("+-") {
		case '+':
			v += c.product(depth)
		case '-':
			v -= c.product(depth)
		default:
			return v
		}
	}
}

func (c *calculator) product(depth int) float64 {
	v := c.power(depth)
	for {
		switch c.take("*/") {
		case '*':
			v *= c.power(depth)
		case '/':
			d := c.power(depth)
			if d == 0 && c.err == nil {
				c.err = errors.New("division by zero")
			}
			v /= d
		default:
			return v
		}
	}
}

func (c *calculator) power(depth int) float64 {
	v := c.factor(depth)
	if c.take("^") != 0 {
		return math.Pow(v, c.power(depth+1))
	}
	return v
}

func (c *calculator) factor(depth int) float64 {
	if depth > 50 {
		c.rest, c.err = "", errors.New("too many brackets")
		return 0
	}
	var v float64
	switch {
	case c.take("-") != 0:
		return -c.power(depth + 1)
	case c.take("+") != 0:
		return c.factor(depth + 1)
	case c.take("(") != 0:
		v = c.sum(depth + 1)
		if c.take(")") == 0 && c.err == nil {
			c.err = errors.New("a bracket is not closed")
		}
	default:
		n := 0
		for n < len(c.rest) && (c.rest[n] >= '0' && c.rest[n] <= '9' || c.rest[n] == '.') {
			n++
		}
		f, err := strconv.ParseFloat(c.rest[:n], 64)
		if err != nil && c.err == nil {
			c.err = errors.New("a number is missing")
		}
		v, c.rest = f, c.rest[n:]
	}
	for c.rest != "" && c.rest[0] == '%' {
		c.rest = c.rest[1:]
		v /= 100
	}
	return v
}
