package gateway

import (
	"errors"
	"slices"
	"testing"

	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// FuzzConnect checks that any parameters of connect are either refused with an
// answerable error or name a known client and possible versions.
func FuzzConnect(f *testing.F) {
	const client = `"client":{"id":"cli","version":"1","platform":"linux","mode":"cli"}`
	for _, seed := range []string{
		`{"minProtocol":4,"maxProtocol":4,` + client + `}`,
		`{"minProtocol":3,"maxProtocol":4,` + client +
			`,"auth":{"token":"x"},"device":{"id":"a","publicKey":"b","signature":"c","signedAt":1,"nonce":"d"}}`,
		`{"minProtocol":4,"maxProtocol":4,` + client + `,"auth":null,"device":null,"modelCatalog":{"sessionKey":"main"}}`,
		`{"minProtocol":4,"maxProtocol":4,"client":null}`, `{"minProtocol":4e400}`, `{"client":[]}`, `null`,
		`[]`, ``, `{"Client":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parseConnect(b)
		if err != nil {
			if _, ok := errors.AsType[*wire.Error](rpc.Named(wire.MethodConnect, err)); !ok {
				t.Fatalf("%q: %v is not an answerable error", b, err)
			}
			return
		}
		if !slices.Contains(clientIDs[:], p.Client.ID) || !slices.Contains(clientModes[:], p.Client.Mode) ||
			p.MinProtocol < 1 || p.MaxProtocol < 1 {
			t.Fatalf("%q was accepted as %+v", b, p)
		}
	})
}
