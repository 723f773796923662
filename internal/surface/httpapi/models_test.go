package httpapi_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/chela-ai/chela/wire"
)

// TestModelsSnapshot checks that a client that requests models in connect, and
// may read, receives them once after the hello, without a sequence number.
func TestModelsSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, nil)
		for _, tt := range []struct {
			name, merge string
			want        bool
		}{
			{"requested", `{"modelCatalog":{"sessionKey":"main"}}`, true},
			{"not requested", `{}`, false},
			{"of an unknown session", `{"modelCatalog":{"sessionKey":"agent:none:x"}}`, false},
			{"in another form", `{"modelCatalog":["main"]}`, false},
			{"without the read scope", `{"scopes":[],"modelCatalog":{"sessionKey":"main"}}`, false},
		} {
			said, in := s.connect(attempt{merge: tt.merge})
			if in == nil {
				t.Fatalf("%s: %s", tt.name, said)
			}
			// The answer to a call follows everything sent after
			// the hello.
			if err := in.ws.Write(t.Context(), 1, []byte(`{"type":"req","id":"2","method":"none","params":{}}`)); err != nil {
				t.Fatal(err)
			}
			var got *wire.ModelsSnapshot
			for {
				var f struct {
					Type, Event string
					Seq         *int64
					Payload     json.RawMessage
				}
				if s.read(in.ws, &f); f.Type == wire.TypeResponse {
					break
				}
				if f.Event != wire.EventModelsSnapshot {
					continue
				}
				if got != nil || f.Seq != nil {
					t.Errorf("%s: sent twice, or with a sequence number", tt.name)
				}
				got = new(wire.ModelsSnapshot)
				if err := json.Unmarshal(f.Payload, got); err != nil {
					t.Fatal(err)
				}
			}
			if (got != nil) != tt.want || got != nil && (got.Target.SessionKey != "main" || got.Scope != got.Target ||
				len(got.Catalog.Models) != 1) {
				t.Errorf("%s: %+v", tt.name, got)
			}
		}
	})
}
