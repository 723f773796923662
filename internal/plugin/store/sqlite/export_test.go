package sqlite

// SetRewrite replaces the function that rewrites the log after a fault.
func (d *DB) SetRewrite(f func(path string) error) { d.rewrite = f }
