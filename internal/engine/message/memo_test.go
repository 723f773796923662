package message

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/action"
)

func TestMemo(t *testing.T) {
	t.Run("requests with one key at the same time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var m memo
			n := 0
			slow := func() (action.Result, error) {
				n++
				time.Sleep(time.Minute)
				return action.Result{Text: fmt.Sprint("call ", n)}, nil
			}
			for range 3 {
				go func() {
					if r, err := m.do(t.Context(), "k", slow); err != nil || r.Text != "call 1" {
						t.Errorf("%+v %v", r, err)
					}
				}()
			}
			synctest.Wait()
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := m.do(short, "k", slow); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a caller that ends: %v", err)
			}
			time.Sleep(time.Hour)
		})
	})
	t.Run("a request that failed is made again", func(t *testing.T) {
		var m memo
		for range 3 {
			if _, err := m.do(t.Context(), "k",
				func() (action.Result, error) { return action.Result{}, errors.New("refused") }); err == nil {
				t.Error("no error")
			}
		}
		if len(m.calls) != 0 || len(m.order) != 0 {
			t.Errorf("%d calls, %d keys are kept", len(m.calls), len(m.order))
		}
		r, err := m.do(t.Context(), "k", func() (action.Result, error) { return action.Result{Text: "done"}, nil })
		if err != nil || r.Text != "done" {
			t.Errorf("%+v %v", r, err)
		}
	})
	t.Run("the oldest ones are forgotten", func(t *testing.T) {
		var m memo
		n := 0
		count := func() (action.Result, error) { n++; return action.Result{}, nil }
		for i := range remembered + 1 {
			_, _ = m.do(t.Context(), fmt.Sprint(i), count)
		}
		_, _ = m.do(t.Context(), "1", count)
		if n != remembered+1 || len(m.calls) != remembered {
			t.Errorf("%d calls, %d kept", n, len(m.calls))
		}
		if _, _ = m.do(t.Context(), "0", count); n != remembered+2 {
			t.Errorf("%d calls", n)
		}
	})
}
