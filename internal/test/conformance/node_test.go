//go:build conformance

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// TestNode runs OpenClaw's node host against our gateway.
func TestNode(t *testing.T) {
	t.Parallel()
	s := newGateway(t, section{"tools": section{"exec": section{"mode": "ask", "host": "realnode"}}})
	p := newPerson(t, current(), section{})
	ctx, cancel := context.WithCancel(t.Context())
	var log bytes.Buffer
	cmd := p.command(ctx, "node", "run", "--host", "127.0.0.1", "--port", fmt.Sprint(s.Port), "--display-name", "realnode")
	cmd.Env = append(cmd.Env, "OPENCLAW_GATEWAY_TOKEN="+token)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Log(log.String())
		}
	}()
	op := s.operator(t)
	var pairs wire.NodePairs
	waittest.Until(t, "the node", func() bool {
		op.Must(wire.MethodNodePairList, wire.None{}, &pairs)
		return len(pairs.Pending) == 1
	})
	if r := pairs.Pending[0]; r.DisplayName != "realnode" || !slices.Contains(r.Commands, wire.NodeRun) ||
		!slices.Contains(r.Required, wire.ScopeAdmin) {
		t.Errorf("it asks for %+v", r)
	}
	op.Must(wire.MethodNodePairApprove, wire.DeviceRequestID{ID: pairs.Pending[0].ID}, &wire.NodeApprovedResult{})
	id := pairs.Pending[0].NodeClient.ID
	invoke := func(command, params string, to any) {
		t.Helper()
		var out wire.NodeInvoked
		op.Must(wire.MethodNodeInvoke, wire.NodeInvoke{Node: id, Command: command, Params: json.RawMessage(params),
			Key: command + params}, &out)
		if err := json.Unmarshal(out.Payload, to); err != nil {
			t.Errorf("%s: %s: %v", command, out.Payload, err)
		}
	}
	var which wire.NodeWhichResult
	invoke(wire.NodeWhich, `{"bins":["sh","no-such-program"]}`, &which)
	if len(which.Bins) != 1 || !strings.HasSuffix(which.Bins["sh"], "/sh") {
		t.Errorf("which: %+v", which)
	}
	var run wire.NodeRunResult
	invoke(wire.NodeRun, `{"command":["/bin/sh","-lc","echo out; echo err >&2; exit 3"]}`, &run)
	if run.ExitCode == nil || *run.ExitCode != 3 || run.Success || run.Stdout != "out\n" || run.Stderr != "err\n" {
		t.Errorf("run: %+v", run)
	}
	remote := newPerson(t, current(), s.remoteConfig())
	remote.t = t
	if a := remote.Run("nodes", "invoke", "--node", id, "--command", wire.NodeWhich, "--params",
		`{"bins":["sh"]}`); a.Code != 0 || !strings.Contains(a.Out, "/sh") {
		t.Errorf("openclaw nodes invoke: %+v", a)
	}
}
