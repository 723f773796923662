package channel

// Varied is a channel whose type does not tell its abilities, such as one that a program
// implements. As sets target, a pointer to a variable of an ability's type such as
// *[Editor], to the ability, and reports whether the channel has it.
type Varied interface {
	As(target any) bool
}

// As returns an optional ability of a channel, such as [Editor], and reports whether the
// channel has it. c may be the Can of a [Factory].
func As[T any](c Channel) (ability T, ok bool) {
	if v, varied := c.(Varied); varied {
		ok = v.As(&ability)
		return ability, ok
	}
	ability, ok = c.(T)
	return ability, ok
}
