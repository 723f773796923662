package pdf

import "strings"

// glyphNames returns the text of named glyphs that are not letters.
func glyphNames() map[string]string {
	const table = `exclam ! quotedbl " numbersign # dollar $ percent % ampersand & quotesingle ' parenleft ( parenright ) asterisk *
plus + comma , hyphen - minus − period . slash / zero 0 one 1 two 2 three 3 four 4 five 5 six 6 seven 7 eight 8 nine 9 colon : semicolon ;
less < equal = greater > question ? at @ bracketleft [ backslash \ bracketright ] asciicircum ^ underscore _ grave ` +
		"`" + ` braceleft {
bar | braceright } asciitilde ~ quoteleft ‘ quoteright ’ quotedblleft “ quotedblright ” quotesinglbase ‚ quotedblbase „ endash – emdash —
ellipsis … bullet • dagger † daggerdbl ‡ guillemotleft « guillemotright » guilsinglleft ‹ guilsinglright › fi fi fl fl ff ff ffi ffi ffl ffl
section § paragraph ¶ copyright © registered ® trademark ™ degree ° plusminus ± multiply × divide ÷ mu µ sterling £ cent ¢ yen ¥ Euro €
exclamdown ¡ questiondown ¿ germandbls ß ae æ AE Æ oe œ OE Œ oslash ø Oslash Ø dotlessi ı eth ð Eth Ð thorn þ Thorn Þ lslash ł Lslash Ł
onehalf ½ onequarter ¼ threequarters ¾ onesuperior ¹ twosuperior ² threesuperior ³ periodcentered · softhyphen - fraction ⁄
alpha α beta β gamma γ delta δ epsilon ε zeta ζ eta η theta θ iota ι kappa κ lambda λ nu ν xi ξ pi π rho ρ sigma σ tau τ phi φ chi χ psi ψ
omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Phi Φ Psi Ψ Omega Ω infinity ∞ summation ∑ product ∏ integral ∫ radical √
partialdiff ∂ lessequal ≤ greaterequal ≥ notequal ≠ approxequal ≈ arrowright → arrowleft ← element ∈`
	fields := strings.Fields(table)
	out := map[string]string{"nbspace": "\u00a0", "space": " "}
	for i := 0; i+1 < len(fields); i += 2 {
		out[fields[i]] = fields[i+1]
	}
	return out
}

// accents returns the suffixes of names of accented letters, and the
// combining characters.
func accents() map[string]string {
	return map[string]string{
		"grave":        "\u0300",
		"acute":        "\u0301",
		"circumflex":   "\u0302",
		"tilde":        "\u0303",
		"macron":       "\u0304",
		"breve":        "\u0306",
		"dotaccent":    "\u0307",
		"dieresis":     "\u0308",
		"ring":         "\u030a",
		"hungarumlaut": "\u030b",
		"caron":        "\u030c",

		"cedilla": "\u0327",
		"ogonek":  "\u0328",
	}
}

// ligatures replaces ligatures by their letters.
func ligatures() *strings.Replacer {
	return strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st")
}
