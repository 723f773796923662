package services

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
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
