package host

// Mark returns no mark: job objects die with their owner.
func Mark(string) (string, error) { return "", nil }
