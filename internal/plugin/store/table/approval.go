package table

import (
	"fmt"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
)

// approvals is the table of approval requests.
type approvals struct{ c *Tables }

var _ approval.Table = approvals{}

func (t approvals) list(where string, args ...any) ([]approval.Request, error) {
	return Collect(t.c, ScanJSON[approval.Request],
		"SELECT request, intact(n, id, session, run, tool, hash, decision, created, request, crc) FROM approval WHERE "+where,
		args...)
}

// Get returns a request.
func (t approvals) Get(id string) (approval.Request, error) {
	return get(t.list, "approval", "id = ?", id)
}

// Pending returns the undecided requests of a session, oldest first. An empty key
// selects all sessions.
func (t approvals) Pending(key chela.SessionKey) ([]approval.Request, error) {
	return t.list("decision = '' AND (?1 = '' OR session = ?1) ORDER BY created, n", str(key))
}

// Decided returns decided requests, newest first.
func (t approvals) Decided(before string, n int) ([]approval.Request, error) {
	return t.list("decision <> '' AND (?1 = '' OR n < (SELECT n FROM approval WHERE id = ?1)) ORDER BY n DESC LIMIT ?2",
		before, n)
}

// Always returns the requests with the decision "always allow", oldest first.
func (t approvals) Always(agent chela.AgentID, tool string) ([]approval.Request, error) {
	prefix := ""
	if agent != "" {
		prefix = agentPrefix(agent)
	}
	return t.list(standing+
		" AND decision = 'allow-always' AND substr(session, 1, length(?1)) = ?1 AND (?2 = '' OR tool = ?2) ORDER BY n",
		prefix, tool)
}

// Standing returns the requests whose decision also applies to later calls of the
// session, oldest first.
func (t approvals) Standing(key chela.SessionKey, tool string) ([]approval.Request, error) {
	return t.list(standing+` AND tool = ?1 AND (decision = 'allow-session' AND session = ?2
OR decision = 'allow-always' AND substr(session, 1, length(?3)) = ?3) ORDER BY n`, tool, str(key),
		agentPrefix(key.Agent()))
}

// standing is the condition of the partial index.
const standing = "decision IN ('allow-always', 'allow-session')"

// agentPrefix returns the prefix of the session keys of an agent.
func agentPrefix(id chela.AgentID) string { return "agent:" + string(id) + ":" }

// Put stores a request by its id.
func (t approvals) Put(v approval.Request) error {
	request, err := encode(v)
	if err != nil {
		return fmt.Errorf("approval %s: %w", v.ID, err)
	}
	_, err = t.c.Exec(
		`INSERT INTO approval (id, session, run, tool, hash, decision, created, request) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET session = excluded.session, run = excluded.run, tool = excluded.tool, hash = excluded.hash,
decision = excluded.decision, created = excluded.created, request = excluded.request`,
		v.ID, str(v.Session), str(v.Run), v.Tool, v.Hash, str(v.Decision), v.Created, request)
	return err
}
