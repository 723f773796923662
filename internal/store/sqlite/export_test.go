package sqlite

// SetRewrite has the log written again by f after a fault.
func (d *DB) SetRewrite(f func(path string) error) { d.rewrite = f }
