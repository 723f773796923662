package standard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
)

// OpenPage shows a web page in the person's browser, which keeps running on its own.
func OpenPage(url string) error {
	argv := []string{"xdg-open", url}
	switch runtime.GOOS {
	case "darwin":
		argv[0] = "open"
	case "windows":
		argv = []string{"rundll32", "url.dll,FileProtocolHandler", url}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return errors.New("there is no desktop here")
		}
	}
	path := lookPath(argv[0])
	if path == "" {
		return fmt.Errorf("%s: %w", argv[0], fs.ErrNotExist)
	}
	return host.Detach(path, argv, os.Environ())
}
