package bundled

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/charset"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
)

// bootFile is the file that boot-md carries out.
const bootFile = "BOOT.md"

// maxBoot is the maximum size of a BOOT.md in bytes.
const maxBoot = 32 << 10

const bootText = "The gateway has started. Carry out the instructions of BOOT.md below. To write to somebody, use the message tool. " +
	"If there is nothing to do, answer NO_REPLY.\n\nBOOT.md:\n"

// addBoot adds the hook boot-md: a turn in the session boot of each agent whose
// workspace has a BOOT.md, once for each start. The turn has the rights of the owner,
// who wrote the file or let the agent write it, and its answer goes nowhere.
func addBoot(env Env, _ json.RawMessage, to *hook.Points) error {
	to.GatewayStart.Add(hook.Hook[hook.Gateway, hook.None]{Name: "boot-md",
		Func: func(ctx context.Context, _ hook.Gateway) (hook.None, error) {
			var errs []error
			for _, a := range env.Agents {
				text, err := readIn(a.Workspace, bootFile, maxBoot)
				if errors.Is(err, os.ErrNotExist) || err == nil && strings.TrimSpace(text) == "" {
					continue
				}
				if err == nil {
					err = boot(ctx, env, a.ID, text)
				}
				errs = append(errs, err)
			}
			return hook.None{}, errors.Join(errs...)
		}})
	return nil
}

// boot puts the turn of one agent into the queue.
func boot(ctx context.Context, env Env, agent, text string) error {
	key, err := chela.ParseSessionKey("agent:"+agent+":boot", chela.AgentID(agent))
	if err != nil {
		return err
	}
	now := time.Now()
	return env.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		return store.Enqueue(tx, queue.Item{
			ID:        uuid.NewString(),
			Key:       "boot:" + env.Instance + ":" + agent,
			Session:   key,
			Kind:      queue.Event,
			State:     queue.Waiting,
			Created:   now,
			Origin:    chela.Origin{Kind: chela.OriginHook, ID: "boot-md"},
			Principal: chela.Owner("hook"),
			Inbound:   chela.Inbound{Text: bootText + text, Time: now},
			Overrides: run.Overrides{Context: run.ContextFresh, Deliver: run.Delivery{Mode: run.DeliverNowhere}},
		})
	})
}

// readIn reads a file in a folder that is not a link out of it.
func readIn(dir, name string, most int64) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, errors.New(name+" is not a regular file"))
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	text, _, _ := charset.Text(b)
	return strings.ToValidUTF8(text, "\ufffd"), err
}
