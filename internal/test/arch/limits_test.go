package arch

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// clock is the package time for the evaluation of constants: its units.
type clock struct{}

// Import implements types.Importer.
func (clock) Import(path string) (*types.Package, error) {
	if path != "time" {
		return nil, fmt.Errorf("%s is not needed", path)
	}
	p := types.NewPackage("time", "time")
	name := types.NewTypeName(token.NoPos, p, "Duration", nil)
	d := types.NewNamed(name, types.Typ[types.Int64], nil)
	p.Scope().Insert(name)
	for unit, v := range map[string]time.Duration{
		"Nanosecond":  time.Nanosecond,
		"Microsecond": time.Microsecond,
		"Millisecond": time.Millisecond,
		"Second":      time.Second,
		"Minute":      time.Minute,
		"Hour":        time.Hour,
	} {
		p.Scope().Insert(types.NewConst(token.NoPos, p, unit, d, constant.MakeInt64(int64(v))))
	}
	p.MarkComplete()
	return p, nil
}

// constants returns the numbers that the constants of a package stand for; times are in
// nanoseconds. Those that depend on other packages are missing.
func constants(t *testing.T, dir string, files []string) map[string]int64 {
	t.Helper()
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range files {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	conf := types.Config{Importer: clock{}, Error: func(error) {}, IgnoreFuncBodies: true}
	p, _ := conf.Check("p", fset, parsed, nil) // what is imported is not known
	out := map[string]int64{}
	for _, name := range p.Scope().Names() {
		if c, ok := p.Scope().Lookup(name).(*types.Const); ok && c.Val().Kind() != constant.Unknown {
			if n, exact := constant.Int64Val(constant.ToInt(c.Val())); exact && constant.ToInt(c.Val()).Kind() == constant.Int {
				out[name] = n
			}
		}
	}
	return out
}

// limits are the limits and times that were decided, by package and constant. A test of a limit
// that uses the constant itself does not notice that the constant has changed; this one does.
var limits = map[string]map[string]int64{
	"internal/app/tunnel": {
		"connectTime": 15,
		"aliveTime":   15,
		"aliveCount":  3,
		"maxMessage":  8 << 10,
		"endTime":     int64(time.Second),
	},
	"internal/core/acp": {
		"defaultMost": 4,
		"maxMost":     32,
		"defaultIdle": int64(30 * time.Minute),
	},
	"internal/core/admission": {
		"MaxPending": 3,
	},
	"internal/core/allowlist": {
		"MaxDocument": 1 << 20,
		"maxEntries":  2048,
		"maxPattern":  1024,
	},
	"internal/core/approval": {
		"Lifetime":   int64(30 * time.Minute),
		"maxPending": 64,
		"maxText":    64 << 10,
	},
	"internal/core/canvas": {
		"MaxLines":      256 << 10,
		"maxComponents": 1000,
		"maxKept":       400,
		"maxKeptBytes":  1 << 20,
		"maxMessages":   500,
		"maxSurfaces":   20,
		"maxID":         200,
	},
	"internal/core/compact": {
		"defaultReserve":    16_384,
		"defaultFloor":      20_000,
		"defaultKeepRecent": 20_000,
		"defaultFlushSoft":  4000,
		"defaultTimeout":    int64(3 * time.Minute),
		"defaultTurns":      3,
	},
	"internal/core/drawing": {
		"MaxCount":   4,
		"MaxPicture": 25 << 20,
		"MaxPrompt":  32_000,
		"MaxSources": 5,
		"maxTimeout": int64(10 * time.Minute),
	},
	"internal/core/exchange": {
		"maxTurns": 5,
		"MaxWait":  int64(10 * time.Minute),
		"MaxText":  32 << 10,
		"maxReply": 16_000,
	},
	"internal/core/failover": {
		"maxBillingCooldown": int64(24 * time.Hour),
		"maxRetryAfter":      int64(24 * time.Hour),
	},
	"internal/core/heartbeat": {
		"DefaultEvery":  int64(30 * time.Minute),
		"DefaultMaxAck": 300,
		"MaxPreview":    200,
		"minEvery":      int64(time.Minute),
		"MinGap":        int64(30 * time.Second),
	},
	"internal/core/job": {
		"Timeout":           int64(10 * time.Minute),
		"defaultConcurrent": 8,
		"defaultKeep":       2000,
		"defaultRetention":  int64(24 * time.Hour),
		"maxStagger":        int64(5 * time.Minute),
		"MinGap":            int64(2 * time.Second),
		"MinEvery":          int64(time.Second),
		"MaxErrors":         10,
		"maxPast":           int64(time.Minute),
		"defaultAttempts":   3,
		"defaultCooldown":   int64(time.Hour),
		"MaxBadSchedule":    3,
		"MaxMissed":         10,
	},
	"internal/core/journal": {
		"defaultDays":    90,
		"MaxContent":     8 << 20,
		"defaultMaxSize": 512 << 20,
	},
	"internal/core/media": {
		"Grace":      int64(time.Hour),
		"MaxFile":    20 << 20,
		"MaxImage":   6 << 20,
		"MaxOutput":  64 << 20,
		"MaxOutputs": 1 << 30,
		"MaxSide":    1200,
		"MaxPixels":  25_000_000,
	},
	"internal/core/memory": {
		"DefaultLines": 120,
		"DefaultMax":   6,
	},
	"internal/core/node": {
		"DefaultTimeout": int64(30 * time.Second),
		"MaxTimeout":     int64(time.Hour),
		"MaxPayload":     24 << 20,
		"MaxParams":      4 << 20,
	},
	"internal/core/pairing": {
		"Lifetime":       int64(5 * time.Minute),
		"InviteLifetime": int64(10 * time.Minute),
		"MaxDevices":     1000,
		"MaxRequests":    64,
		"maxInvites":     16,
		"maxTokens":      4,
	},
	"internal/core/prompt": {
		"DefaultMaxFile":   20_000,
		"DefaultMaxFiles":  150_000,
		"maxUser":          4000,
		"defaultFileBytes": 16_384,
		"defaultFileChars": 1200,
		"defaultTotal":     2800,
	},
	"internal/core/queue": {
		"DefaultCap": 20,
		"MaxNext":    20,
	},
	"internal/core/session": {
		"defaultResetHour": 4,
		"defaultFocusIdle": 24,
		"maxTitle":         60,
		"MaxFocus":         32,
	},
	"internal/core/signature": {
		"Window": int64(5 * time.Minute),
	},
	"internal/core/skill": {
		"defaultMaxChars": 18_000,
		"defaultMaxCount": 150,
		"maxDescription":  1024,
		"maxName":         64,
		"maxFile":         256 << 10,
	},
	"internal/core/speech": {
		"defaultText":    4000,
		"defaultTimeout": int64(30 * time.Second),
		"MaxAudio":       20 << 20,
	},
	"internal/core/subagent": {
		"defaultMaxChildren":    5,
		"defaultMaxConcurrent":  8,
		"defaultArchiveMinutes": 60,
		"defaultAnnounceMS":     120_000,
		"maxMaxChildren":        20,
		"maxMaxDepth":           5,
		"MaxTree":               200,
		"defaultMaxFiles":       50,
		"defaultMaxFile":        1 << 20,
		"defaultMaxTotal":       5 << 20,
		"maxTask":               64 << 10,
		"maxResult":             16_000,
	},
	"internal/core/task": {
		"keepFor":  int64(7 * 24 * time.Hour),
		"keepLost": int64(24 * time.Hour),
	},
	"internal/core/window": {
		"defaultKeep":     3,
		"defaultTTL":      int64(5 * time.Minute),
		"defaultLongTTL":  int64(time.Hour),
		"defaultMinChars": 50_000,
		"defaultTrimMax":  4000,
		"defaultTrimEnd":  1500,
		"MinWindow":       16_000,
		"maxImages":       20,
		"leftImages":      10,
	},
	"internal/engine/canvas": {
		"connLifetime": int64(10 * time.Minute),
		"linkLifetime": int64(time.Hour),
		"linkLimit":    int64(24 * time.Hour),
		"maxCanvases":  64,
		"maxGrants":    1024,
	},
	"internal/engine/cron": {
		"maxSleep":     int64(time.Minute),
		"checkTimeout": int64(30 * time.Second),
	},
	"internal/engine/deliver": {
		"maxAge":              int64(24 * time.Hour),
		"maxAttempts":         5,
		"sendTimeout":         int64(time.Minute),
		"typingInterval":      int64(6 * time.Second),
		"previewDelay":        int64(400 * time.Millisecond),
		"defaultEditInterval": int64(time.Second),
		"maxParts":            1000,
	},
	"internal/engine/inbound": {
		"MaxText":        1 << 20,
		"MaxBytes":       20 << 20,
		"MaxMedia":       16,
		"maxBotMessages": 20,
	},
	"internal/engine/invoke": {
		"defaultMaxResult": 64_000,
	},
	"internal/engine/maintenance": {
		"retention":      int64(30 * 24 * time.Hour),
		"startDelay":     int64(time.Minute),
		"pruneEvery":     int64(6 * time.Hour),
		"defaultEntries": 500,
		"maxEntries":     100_000,
	},
	"internal/engine/relay": {
		"maxHops":     5,
		"maxWaiting":  20,
		"maxReplaced": 16,
	},
	"internal/engine/runner": {
		"maxRetries":     3,
		"maxStarts":      10,
		"maxCompactions": 3,
		"maxRetryAfter":  int64(time.Minute),
		"maxAside":       int64(5 * time.Minute),
	},
	"internal/engine/spawn": {
		"maxMessage":   16 << 10,
		"sweepEvery":   int64(time.Minute),
		"maxAncestors": 16,
		"maxEnded":     256,
	},
	"internal/engine/webhook": {
		"DefaultMaxBody":   262_144,
		"maxMaxBody":       4 << 20,
		"defaultTolerance": int64(5 * time.Minute),
		"maxTolerance":     int64(time.Hour),
		"transformTime":    int64(10 * time.Second),
		"maxWaiting":       1000,
	},
	"internal/plugin/tool/exec": {
		"maxYield":        int64(2 * time.Minute),
		"maxPoll":         int64(30 * time.Second),
		"defaultLogLines": 200,
		"maxRetained":     2_000_000,
		"maxUnread":       30_000,
	},
	"internal/plugin/tool/fs": {
		"defaultLines":   2000,
		"maxRead":        100_000,
		"defaultFound":   200,
		"defaultMatches": 100,
	},
	"internal/plugin/tool/sessions": {
		"defaultHistory": 50,
		"maxHistory":     80 << 10,
		"maxBlock":       4000,
		"defaultList":    50,
		"defaultWait":    int64(30 * time.Second),
	},
	"internal/plugin/tool/web": {
		"defaultBytes": 750_000,
		"defaultChars": 20_000,
		"defaultTTL":   int64(15 * time.Minute),
		"defaultTime":  int64(30 * time.Second),
		"maxResults":   10,
	},
	"internal/surface/access": {
		"maxFailures": 10,
		"window":      int64(time.Minute),
		"lockout":     int64(5 * time.Minute),
		"maxHosts":    4096,
	},
	"internal/surface/gateway": {
		"handshakeTimeout": int64(15 * time.Second),
		"pingTimeout":      int64(15 * time.Second),
		"maxPending":       512,
		"resumeWindow":     int64(2 * time.Minute),
	},
	"internal/surface/httpapi": {
		"maxBody":  2 << 20,
		"bodyTime": int64(30 * time.Second),
	},
	"internal/surface/mcpserver": {
		"usualConversations": 50,
		"maxConversations":   500,
		"usualMessages":      20,
		"maxMessages":        200,
		"usualWait":          int64(30 * time.Second),
		"maxWait":            int64(5 * time.Minute),
		"maxEvents":          1000,
	},
	"internal/surface/method/chat": {
		"defaultLimit": 200,
		"maxLimit":     1000,
		"defaultWait":  int64(30 * time.Second),
		"maxLabel":     100,
	},
}

// TestLimits compares the constants with the list.
func TestLimits(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, p := range list(t) {
		want := limits[short(p.ImportPath)]
		if want == nil {
			continue
		}
		found[short(p.ImportPath)] = true
		got := constants(t, p.Dir, p.GoFiles)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if n, ok := got[name]; !ok || n != want[name] {
				t.Errorf("%s: %s is %d, want %d (in nanoseconds if it is a time)", short(p.ImportPath), name, n, want[name])
			}
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(limits)) {
		if !found[pkg] {
			t.Errorf("%s: listed, but there is no such package", pkg)
		}
	}
}
