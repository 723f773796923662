package httpapi_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/chela-ai/chela/wire"
)

// TestModelsSnapshot: who asks for models with its connect, and may read, is
// told of them after its hello, once and outside of the numbered events.
func TestModelsSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, nil)
		for _, tt := range []struct {
			name, merge string
			want        bool
		}{
			{"asked for", `{"modelCatalog":{"sessionKey":"main"}}`, true},
			{"not asked for", `{}`, false},
			{"of a session that there is not", `{"modelCatalog":{"sessionKey":"agent:none:x"}}`, false},
			{"in another form", `{"modelCatalog":["main"]}`, false},
			{"by who may not read", `{"scopes":[],"modelCatalog":{"sessionKey":"main"}}`, false},
		} {
			said, in := s.connect(try{merge: tt.merge})
			if in == nil {
				t.Fatalf("%s: %s", tt.name, said)
			}
			// The answer to a call comes after what followed the hello.
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
					t.Errorf("%s: told twice, or with a number", tt.name)
				}
				got = new(wire.ModelsSnapshot)
				if err := json.Unmarshal(f.Payload, got); err != nil {
					t.Fatal(err)
				}
			}
			if (got != nil) != tt.want || got != nil && (got.Target.SessionKey != "main" || got.Scope != got.Target || len(got.Catalog.Models) != 1) {
				t.Errorf("%s: %+v", tt.name, got)
			}
		}
	})
}
