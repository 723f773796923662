package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/wire"
)

// Starting returns the handler that tells clients of a gateway that is not up
// yet to come again shortly.
func Starting() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			return // Accept answered
		}
		defer ws.CloseNow()
		ctx, cancel := context.WithTimeout(r.Context(), handshake)
		defer cancel()
		ws.SetReadLimit(wire.MaxHandshake)
		hello, err := wire.EncodeEvent(wire.EventChallenge, wire.Challenge{Nonce: rand.Text(), Time: wire.At(time.Now())})
		if err != nil || ws.Write(ctx, websocket.MessageText, hello) != nil {
			return
		}
		_, b, err := ws.Read(ctx)
		if err != nil {
			return
		}
		req, _ := wire.ParseRequest(b) // whatever it is, the answer is the same
		no := wire.Errorf(wire.Unavailable, "gateway starting; retry shortly").With(map[string]string{"reason": "startup-sidecars"})
		no.Retryable, no.RetryAfterMs = true, 500
		if b, err = wire.EncodeResponse(cmp.Or(req.ID, "invalid"), nil, no); err == nil {
			err = ws.Write(ctx, websocket.MessageText, b)
		}
		if err == nil {
			ws.Close(wire.CloseStarting, "gateway starting")
		}
	})
}
