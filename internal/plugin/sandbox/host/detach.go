package host

import (
	"fmt"
	"os"
	"os/exec"
	"time"
)

// detachTime is how long Detach waits for a program that does not start well.
const detachTime = 2 * time.Second

// Detach starts a program that goes on by itself, such as a browser: it is not ended with this
// process. It returns an error if the program ends with one at once.
func Detach(path string, argv, env []string) error {
	cmd := &exec.Cmd{Path: path, Args: argv, Dir: os.TempDir(), Env: env, SysProcAttr: alone()}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("%s: %w", argv[0], err)
		}
	case <-time.After(detachTime):
	}
	return nil
}
