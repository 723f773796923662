package browser

import "os"

// alive reports whether a process exists. On Windows, FindProcess finds no other.
func alive(*os.Process) bool { return true }
