package wireview

import (
	"time"

	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/wire"
)

// Heartbeat returns the outcome of a heartbeat.
func Heartbeat(r heartbeat.Result) wire.Heartbeat {
	return wire.Heartbeat{
		Time:       wire.At(r.Time),
		Status:     string(r.Status),
		Channel:    r.To.Channel,
		To:         r.To.Peer.ID,
		AccountID:  string(r.To.Account),
		Preview:    r.Preview,
		Reason:     r.Reason,
		DurationMs: r.Duration.Milliseconds(),
		Silent:     r.Silent,
		Indicator:  r.Indicator,
		AgentID:    string(r.Agent),
		SessionKey: string(r.Session),
		RunID:      string(r.Run),
	}
}

// Every returns an interval as text; 0: off.
func Every(d time.Duration) string {
	switch {
	case d <= 0:
		return "off"
	case d%time.Hour == 0:
		return d.Truncate(time.Hour).String()[:len(d.String())-len("0m0s")]
	case d%time.Minute == 0:
		return d.String()[:len(d.String())-len("0s")]
	}
	return d.String()
}
