package table

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/chela-ai/chela/internal/core/store"
)

// Invoke runs the function of an update. It converts a panic to an error, so that neither
// other updates of the same commit nor the process fail.
func Invoke(log *slog.Logger, c *Tables, wakes *[]store.Topic, f func(store.Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic in an update", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("update: panic: %v", p)
		}
	}()
	return f(Tx{C: c, Wakes: wakes})
}
