package services

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/service"
)

// wait returns a service that records its end.
func wait(name string, events *[]string) service.Func {
	return func(ctx context.Context) error {
		<-ctx.Done()
		*events = append(*events, name)
		return nil
	}
}

// events are what services did since they were last read.
type events struct {
	mu   sync.Mutex
	list []string
}

func (e *events) add(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, what)
}

func (e *events) read() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	slices.Sort(e.list)
	out := strings.Join(e.list, ", ")
	e.list = nil
	return out
}

// runs returns a service that records when it begins with a section, and its end.
func runs(name string, raw json.RawMessage, e *events) service.Func {
	return func(ctx context.Context) error {
		e.add(name + " begins with " + string(raw))
		<-ctx.Done()
		e.add(name + " ends")
		return nil
	}
}

// able is a service that takes a new section while it runs. It refuses 9 and does not
// apply 8.
type able struct {
	service.Func
	*events
}

func (a able) Reload(raw json.RawMessage) (bool, error) {
	a.add("able is offered " + string(raw))
	if string(raw) == "9" {
		return true, errors.New("refused")
	}
	return string(raw) != "8", nil
}

func TestSupervisor(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	t.Run("services stop in the opposite order", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var events []string
			s := New(t.Context(), quiet)
			for _, name := range []string{"a", "b", "c"} {
				s.Start(name, wait(name, &events))
			}
			if !s.Stop(t.Context()) || !slices.Equal(events, []string{"c", "b", "a"}) {
				t.Errorf("stopped %q", events)
			}
		})
	})
	t.Run("a service that does not end is reported", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := New(t.Context(), quiet)
			release := make(chan struct{})
			s.Start("slow", func(context.Context) error { <-release; return nil })
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if s.Stop(ctx) {
				t.Error("Stop reports that all services ended")
			}
			close(release)
		})
	})
	t.Run("a service that is changing the services is stopped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := New(t.Context(), slog.New(slog.DiscardHandler))
			s.Start("changing", func(ctx context.Context) error {
				<-ctx.Done()
				s.Apply(&Plan{made: []*running{{name: "late", service: service.Func(func(context.Context) error {
					t.Error("a service is started while all of them stop")
					return nil
				})}}})
				return nil
			})
			if !s.Stop(t.Context()) {
				t.Error("it did not end")
			}
		})
	})
	t.Run("a changed section is offered to the service, which is replaced unless it applies it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := &events{}
			makers := []Maker{
				{Name: "plain", Section: "plain",
					New: func(raw json.RawMessage) (service.Service, error) { return runs("plain", raw, e), nil }},
				{Name: "able", Section: "able", New: func(raw json.RawMessage) (service.Service, error) {
					if string(raw) == "0" {
						return nil, nil // it is off
					}
					return able{runs("able", raw, e), e}, nil
				}},
			}
			s := New(t.Context(), quiet)
			for _, step := range []struct{ plain, able, want string }{
				{"1", "1", "able begins with 1, plain begins with 1"},
				{"1", "1", ""},
				{"2", "1", "plain begins with 2, plain ends"},
				{"2", "2", "able is offered 2"},
				{"2", "2", ""},
				{"2", "9", "able begins with 9, able ends, able is offered 9"},
				{"2", "8", "able begins with 8, able ends, able is offered 8"},
				{"2", "0", "able ends"},
				{"2", "3", "able begins with 3"},
			} {
				p, err := s.Prepare(makers, func(path string) json.RawMessage {
					return json.RawMessage(map[string]string{"plain": step.plain, "able": step.able}[path])
				})
				if err != nil {
					t.Fatal(err)
				}
				s.Apply(p)
				synctest.Wait()
				if got := e.read(); got != step.want {
					t.Errorf("%s and %s: %q, want %q", step.plain, step.able, got, step.want)
				}
			}
			s.Stop(t.Context())
		})
	})
	t.Run("a failure is reported until the service is made again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := New(t.Context(), quiet)
			makers := []Maker{{Name: "m", Section: "m", New: func(raw json.RawMessage) (service.Service, error) {
				return service.Func(func(ctx context.Context) error {
					if string(raw) == "1" {
						return errors.New("broken")
					}
					<-ctx.Done()
					return nil
				}), nil
			}}}
			apply := func(raw string) {
				p, err := s.Prepare(makers, func(string) json.RawMessage { return json.RawMessage(raw) })
				if err != nil {
					t.Fatal(err)
				}
				s.Apply(p)
				synctest.Wait()
			}
			apply("1")
			if err := s.Failed()["m"]; err == nil || err.Error() != "broken" {
				t.Errorf("failed: %v", err)
			}
			apply("2")
			if failed := s.Failed(); len(failed) != 0 {
				t.Errorf("failed: %v", failed)
			}
			s.Stop(t.Context())
		})
	})
}
