package inbound

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	topics "github.com/chela-ai/chela/internal/core/forget"
	"github.com/chela-ai/chela/internal/engine/forget"
)

// Forgetter is [forget.Forgetter].
type Forgetter interface {
	Find(context.Context, topics.Topic) (forget.Report, error)
	Remove(context.Context, topics.Topic) (forget.Report, error)
}

func forgetCommands() []Command {
	return []Command{{
		Name: "forget", Group: "session", Args: "<topic> | yes", Scope: chela.ScopeAdmin, unnamed: true,
		Help:   "show what is known about a topic, and remove it everywhere after /forget yes",
		before: forgetTopic,
	}}
}

// forgetTime is how long a list of /forget can be confirmed.
const forgetTime = 10 * time.Minute

// forgetting are the topics that were listed and may be confirmed. They are in memory
// only: what is to be forgotten is not written down before.
type forgetting struct {
	mu     sync.Mutex
	listed map[listKey]listedTopic
}

type listKey struct {
	session chela.SessionKey
	who     string
}

type listedTopic struct {
	topic   topics.Topic
	expires time.Time
}

func (f *forgetting) put(k listKey, t topics.Topic, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, l := range f.listed {
		if now.After(l.expires) {
			delete(f.listed, k)
		}
	}
	if f.listed == nil {
		f.listed = map[listKey]listedTopic{}
	}
	f.listed[k] = listedTopic{t, now.Add(forgetTime)}
}

// take returns the topic that was listed, once.
func (f *forgetting) take(k listKey, now time.Time) (topics.Topic, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, ok := f.listed[k]
	delete(f.listed, k)
	return l.topic, ok && now.Before(l.expires)
}

// forgetTopic lists what is known about a topic, or removes it.
func forgetTopic(ctx context.Context, k *call) (string, error) {
	f := k.g.o.Forget
	switch {
	case f == nil:
		return "", chela.Errorf(chela.CodeInvalid, "/forget is not available here")
	case !k.in.Address.Private():
		return "", refuse{"Use /forget in a private chat: its answer shows what is known."}
	case k.args == "":
		return "", refuse{"Say what is to be forgotten, for example: /forget Anna's birthday. Use quotation marks for an exact phrase: /forget \"Baker Street\"."}
	}
	key := listKey{k.home, k.who.ID}
	if strings.EqualFold(k.args, "yes") {
		t, ok := k.g.forgetting.take(key, time.Now())
		if !ok {
			return "", refuse{"There is nothing to confirm. List what is known first: /forget <topic>"}
		}
		r, err := f.Remove(ctx, t)
		if err != nil {
			return "", err
		}
		return r.Removed(t), nil
	}
	t, err := topics.Parse(k.args)
	if err != nil {
		return "", err
	}
	r, err := f.Find(ctx, t)
	if err != nil {
		return "", err
	}
	if r.Removable() > 0 {
		k.g.forgetting.put(key, t, time.Now())
	}
	return r.Found("/forget yes (within 10 minutes)"), nil
}
