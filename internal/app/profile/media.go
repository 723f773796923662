package profile

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/app/model"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/drawing"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/talk"
	"github.com/chela-ai/chela/internal/core/untrusted"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/engine/budget"
	painting "github.com/chela-ai/chela/internal/plugin/drawing"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
	voice "github.com/chela-ai/chela/internal/plugin/speech"
	"github.com/chela-ai/chela/internal/plugin/tool/web"
	"github.com/chela-ai/chela/internal/plugin/understanding"
)

// speechModels are the models with which services transcribe recordings, in the order in
// which the services are tried.
var speechModels = [...]llm.Ref{
	{Provider: "openai", Model: "gpt-4o-mini-transcribe"},
	{Provider: "groq", Model: "whisper-large-v3-turbo"},
	{Provider: "mistral", Model: "voxtral-mini-latest"},
}

// makeUnderstander makes what reads attachments for models that cannot.
func (g *Generation) makeUnderstander(c Config, broker sandbox.Broker) error {
	conf, err := understanding.ParseConfig(c.Sections.Section("tools.media"))
	if err != nil {
		return fmt.Errorf("configuration, tools.media: %w", err)
	}
	programs := understanding.Programs{Programs: g.helpers(broker)}
	g.media = conf
	g.reader = understanding.New(understanding.Options{
		Log: g.o.Log, Config: conf, Load: g.o.Files.Load, Extract: web.Text, Label: untrusted.New(), Cache: &g.understood,
		Way: func(k media.Kind, m understanding.Model, by understanding.Caller) (understanding.Way, error) {
			return g.configuredWay(k, m, by, programs)
		},
		Found: func(k media.Kind, by understanding.Caller) []understanding.Way {
			switch k {
			case media.Picture:
				return g.sighted(by)
			case media.Audio:
				return append(g.listeners(by), programs.Local(c.Env)...)
			}
			return nil
		},
		Record: func(ctx context.Context, by understanding.Caller, m llm.Model, u llm.Usage) error {
			row := usage.RowOf(m, u, time.Now())
			row.Run, row.Session, row.Agent = by.Run, by.Session, by.Agent
			return g.o.Store.Update(context.WithoutCancel(ctx), store.Ordered,
				func(tx store.Tx) error { return tx.Usage().Add(row) })
		},
	})
	return nil
}

// makeSpeakers makes what says texts aloud.
func (g *Generation) makeSpeakers(c Config, broker sandbox.Broker) {
	o := voice.Options{
		Log: g.o.Log, Config: g.Settings.Speech, Getenv: c.Env, Endpoint: g.Models.Endpoint, HTTP: g.http,
		Programs: voice.Programs{Programs: g.helpers(broker)},
	}
	g.Speaker = voice.New(o)
	o.Config = g.Settings.TalkSpeech()
	g.Talker = voice.New(o)
}

// painter returns what makes pictures. They are paid from the budgets of the agent.
func (g *Generation) painter(broker sandbox.Broker) drawing.Painter {
	return painting.New(painting.Options{
		Log: g.o.Log, Config: g.Settings.Drawing, Programs: g.helpers(broker),
		Endpoint: func(id string) (dialect.Options, bool, error) {
			api, o, err := g.Models.Dialect(id)
			return o, api == standard.Gemini, err
		},
		Pay: func(by drawing.Buyer, m llm.Model, p llm.Provider) (llm.Provider, error) {
			if g.pricedOnly(by.Agent) {
				var err error
				if m, p, err = model.Priced(m, p); err != nil {
					return nil, err
				}
			}
			return g.o.Budgets.Provider(p, m, budget.Call{Run: by.Run, Agent: by.Agent, Session: by.Session},
				g.Settings.Limits(by.Agent, g.zone)), nil
		},
	})
}

// Talker returns what says answers when apps talk, the section talk, and how many characters
// it says at once.
func (c *Current) Talker() (speech.Speaker, talk.Config, int) {
	g := c.Load()
	return g.Talker, g.Settings.Talk, g.Settings.Speech.Limit()
}

// Say returns a recording of a text as a voice note.
func (c *Current) Say(ctx context.Context, _ chela.AgentID, text string) (chela.Media, error) {
	g := c.Load()
	a, err := g.Speaker.Speak(ctx, speech.Request{Text: text, Note: true})
	if err != nil {
		return chela.Media{}, err
	}
	return g.o.Files.Store(chela.Media{Name: "voice" + speech.Extension(a.Type), Type: a.Type, Data: a.Data})
}

// helpers returns what runs the programs that read attachments and speak.
func (g *Generation) helpers(broker sandbox.Broker) sandbox.Programs {
	return sandbox.Programs{Broker: broker, Environ: g.Environ(), Dir: attachmentDir(g.o.State)}
}

// attachmentDir is the directory for the files of programs that read attachments.
func attachmentDir(state string) string { return filepath.Join(state, "cache", "attachments") }

// configuredWay returns how a model of tools.media is asked.
func (g *Generation) configuredWay(k media.Kind, m understanding.Model, by understanding.Caller,
	programs understanding.Programs) (understanding.Way, error) {
	if m.Program() {
		return understanding.Way{Name: m.Command, Reader: programs.Reader(m.Command, m.Args)}, nil
	}
	models, w := g.AgentModels(by.Agent), understanding.Way{Name: m.Provider + "/" + m.Model}
	switch k {
	case media.Picture:
		info, p, err := models.Resolve(w.Name)
		w.Reader = understanding.Vision(info, g.payFor(by, info, p), g.Settings.Agent.ImageSide)
		return w, err
	case media.Audio:
		o, err := models.Endpoint(m.Provider)
		if m.BaseURL != "" {
			o.BaseURL, err = m.BaseURL, nil
		}
		if err != nil {
			return w, err
		}
		if len(m.Headers) > 0 {
			if o.Header = o.Header.Clone(); o.Header == nil {
				o.Header = http.Header{}
			}
			for name, value := range m.Headers {
				o.Header.Set(name, value)
			}
		}
		if m.Model == "" {
			if at := slices.IndexFunc(speechModels[:], func(r llm.Ref) bool { return r.Provider == m.Provider }); at >= 0 {
				m.Model = speechModels[at].Model
			}
		}
		info, err := models.Info(m.Provider + "/" + m.Model)
		if err != nil {
			info = llm.Model{Provider: m.Provider, ID: m.Model}
		}
		w.Name, w.Reader = info.Ref(), understanding.Speech(o, info)
		return w, nil
	}
	return w, fmt.Errorf("%s: services do not read attachments of the kind %s, only programs do", w.Name, k)
}

// sighted returns the models that describe pictures for a session: its own, the
// configured image model, and those of other services with a key.
func (g *Generation) sighted(by understanding.Caller) (out []understanding.Way) {
	models := g.AgentModels(by.Agent)
	add := func(m llm.Model, p llm.Provider, err error) {
		if err == nil && !slices.ContainsFunc(out, func(w understanding.Way) bool { return w.Name == m.Ref() }) {
			out = append(out, understanding.Way{Name: m.Ref(), Reader: understanding.Vision(m, g.payFor(by, m, p),
				g.Settings.Agent.ImageSide)})
		}
	}
	add(models.Vision(by.Model))
	for _, ref := range models.Sighted() {
		add(models.Resolve(ref.String()))
	}
	return out
}

// payFor returns a provider whose calls are paid from the budgets of those for whom an
// attachment is read.
func (g *Generation) payFor(by understanding.Caller, m llm.Model, p llm.Provider) llm.Provider {
	return g.o.Budgets.Provider(p, m, budget.Call{Run: by.Run, Agent: by.Agent, Session: by.Session},
		g.Settings.Limits(by.Agent, g.zone))
}

// listeners returns the services with a key that transcribe recordings, that of the
// session's model first.
func (g *Generation) listeners(by understanding.Caller) (out []understanding.Way) {
	models := g.AgentModels(by.Agent)
	active, _ := models.Info(by.Model) // an unknown model has no service
	refs := slices.Clone(speechModels[:])
	slices.SortStableFunc(refs, func(a, b llm.Ref) int {
		switch active.Provider {
		case a.Provider:
			return -1
		case b.Provider:
			return 1
		}
		return 0
	})
	for _, ref := range refs {
		o, err := models.Endpoint(ref.Provider)
		if err != nil || o.Key.IsZero() {
			continue
		}
		info, err := models.Info(ref.String())
		if err != nil {
			info = llm.Model{Provider: ref.Provider, ID: ref.Model}
		}
		out = append(out, understanding.Way{Name: ref.String(), Reader: understanding.Speech(o, info)})
	}
	return out
}

// readBy returns for whom the attachments of a run are read, and the kinds that its
// model cannot read itself.
func readBy(m session.Meta, r run.Run, info llm.Model) (understanding.Caller, []media.Kind) {
	kinds := []media.Kind{media.Audio, media.Video, media.Document}
	if !info.Images {
		kinds = append(kinds, media.Picture)
	}
	return understanding.Caller{Run: r.ID, Session: m.Key, Agent: m.Agent, Address: r.Address, Model: info.Ref()}, kinds
}

// understand returns the functions of a run's profile that read attachments.
func (g *Generation) understand(m session.Meta, info llm.Model) (reads func(run.Run, []chela.Media) bool,
	read func(context.Context, run.Run, []chela.Media) ([]chela.Media, error)) {
	reads = func(r run.Run, list []chela.Media) bool {
		by, kinds := readBy(m, r, info)
		return g.reader.Reads(by, list, kinds...)
	}
	read = func(ctx context.Context, r run.Run, list []chela.Media) ([]chela.Media, error) {
		by, kinds := readBy(m, r, info)
		return g.reader.Read(ctx, by, list, kinds...)
	}
	return reads, read
}

// transcriber returns for whom the recordings of a message are transcribed.
func transcriber(it queue.Item) understanding.Caller {
	return understanding.Caller{Run: chela.RunID(it.ID), Session: it.Session, Agent: it.Session.Agent(),
		Address: it.Inbound.Address}
}

// Transcribes reports whether the recordings of a message are transcribed before it is
// handled.
func (c *Current) Transcribes(it queue.Item) bool {
	return c.Load().reader.Reads(transcriber(it), it.Inbound.Media, media.Audio)
}

// Transcribe returns the attachments of a message with the transcripts of its recordings.
func (c *Current) Transcribe(ctx context.Context, it queue.Item) ([]chela.Media, error) {
	return c.Load().reader.Read(ctx, transcriber(it), it.Inbound.Media, media.Audio)
}

// EchoTranscript returns how the transcript of a recording is shown in the chat; "": it
// is not.
func (c *Current) EchoTranscript() string { return c.Load().media.Echo() }
