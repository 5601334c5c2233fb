package accounts

// WithCheck appends to a key's text the check that makes it well formed.
func WithCheck(text string) string { return string(appendCheck([]byte(text), []byte(text))) }
