package host

// Mark returns an empty mark: job objects die with their owner.
func Mark(string) (string, error) { return "", nil }
