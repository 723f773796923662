package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEmptied(t *testing.T) {
	t.Parallel()
	for name, empty := range map[string]func(file string) error{
		"no bytes":    func(file string) error { return os.WriteFile(file, nil, 0o600) },
		"blanks":      func(file string) error { return os.WriteFile(file, []byte(" \n\t\n"), 0o600) },
		"a mark only": func(file string) error { return os.WriteFile(file, []byte("\ufeff\n"), 0o600) },
		"no file":     os.Remove,
	} {
		t.Run("a configuration that was emptied is invalid, and the last good one stays in force: "+name, func(t *testing.T) {
			dir := write(t, map[string]string{"chela.json": "{tools: {deny: ['exec']}}"})
			file := filepath.Join(dir, "chela.json")
			o := Options{Env: env(), LastGood: filepath.Join(dir, "last-good")}
			was, err := o.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := was.SaveLastGood(); err != nil {
				t.Fatal(err)
			}
			if err := empty(file); err != nil {
				t.Fatal(err)
			}
			now, err := o.Load(file)
			if err != nil || now.Broken() == nil || string(now.Section("tools.deny")) != `["exec"]` {
				t.Fatalf("Load: %v", err)
			}
			if said := now.Broken().Error(); !strings.Contains(said, "cp "+o.LastGood+" "+file) ||
				strings.Count(said, "\n") > 0 {
				t.Errorf("it does not say in a line how to get it back: %s", said)
			}
			if _, err := was.Reload(); err == nil {
				t.Error("a running program would use it")
			}
			if ps := o.Validate(file); len(ps) != 1 || !ps[0].Fatal {
				t.Errorf("Validate = %v", ps)
			}
			if _, err := was.Now().Draft(Edit{"gateway.port", []byte("9")}); err == nil {
				t.Error("a change would make it a valid one")
			}
			if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
			if now, err := o.Load(file); err != nil || now.Broken() != nil || now.Section("tools") != nil {
				t.Errorf("an empty object is a configuration: %v", err)
			}
		})
	}
	t.Run("the last good file of another configuration says nothing about this one", func(t *testing.T) {
		dir := write(t, map[string]string{"chela.json": "{tools: {deny: ['exec']}}", "other.json": "", "broken.json": "{"})
		o := Options{Env: env(), LastGood: filepath.Join(dir, "last-good")}
		was, err := o.Load(filepath.Join(dir, "chela.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := was.SaveLastGood(); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"other.json", "new.json"} {
			if now, err := o.Load(filepath.Join(dir, name)); err != nil || now.Broken() != nil || now.Before() != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := o.Load(filepath.Join(dir, "broken.json")); err == nil {
			t.Error("it is used instead of this one")
		}
	})
	t.Run("an empty last good file is not used", func(t *testing.T) {
		dir := write(t, map[string]string{"chela.json": "", "last-good": ""})
		if _, err := (Options{Env: env(), LastGood: filepath.Join(dir, "last-good")}).Load(
			filepath.Join(dir, "chela.json")); err == nil {
			t.Error("it is")
		}
	})
	t.Run("an included file that is empty is an error", func(t *testing.T) {
		dir := write(t, map[string]string{"chela.json": "{tools: {$include: 'tools.json'}}", "tools.json": "\n"})
		if _, err := (Options{Env: env()}).Load(filepath.Join(dir, "chela.json")); err == nil ||
			!strings.Contains(err.Error(), "tools.json: the file is empty") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a written empty text is an empty object", func(t *testing.T) {
		dir := t.TempDir()
		tr, err := Options{Env: env()}.Load(filepath.Join(dir, "chela.json"))
		if err != nil {
			t.Fatal(err)
		}
		d, err := tr.Rewrite(nil)
		if err == nil {
			_, err = d.Write()
		}
		if got := read(t, filepath.Join(dir, "chela.json")); err != nil || got != "{}\n" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestLoosened(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, was, is, want string }{
		{"all is gone", "{tools: {deny: ['web_fetch'], exec: {mode: 'deny'}}, gateway: {auth: {token: 'abcdefghijklmnop'}}, session: {reset: {mode: 'daily'}}}", "{}", "gateway.auth.token tools.deny tools.exec.mode"},
		{"more is forbidden", "{tools: {deny: ['exec'], exec: {mode: 'ask'}}}",
			"{tools: {deny: ['web_*', 'exec'], exec: {mode: 'deny'}, fs: {workspaceOnly: true}}}", ""},
		{"one of two is not denied", "{tools: {deny: ['exec', 'web_*']}}", "{tools: {deny: 'exec'}}", "tools.deny"},
		{"the allowed tools", "{tools: {allow: ['read', 'write']}}", "{tools: {allow: ['read']}}", ""},
		{"another allowed tool", "{tools: {allow: ['read']}}", "{tools: {allow: ['read', 'exec']}}", "tools.allow"},
		{"all tools", "{tools: {allow: ['read']}}", "{}", "tools.allow"},
		{"nothing is asked, because nothing runs", "{tools: {exec: {security: 'full', ask: 'always'}}}",
			"{tools: {exec: {security: 'deny', ask: 'off'}}}", ""},
		{"the same in other words", "{tools: {exec: {mode: 'deny'}}}",
			"{tools: {exec: {security: 'deny', ask: 'always'}}}", ""},
		{"nothing is asked", "{tools: {exec: {mode: 'always'}}}", "{tools: {exec: {mode: 'allowlist'}}}", "tools.exec.mode"},
		{"the default is auto", "{}", "{tools: {exec: {mode: 'auto'}}}", ""},
		{"from ask to the default", "{tools: {exec: {mode: 'ask'}}}", "{}", "tools.exec.mode"},
		{"full", "{}", "{tools: {exec: {mode: 'full'}}, compat: 'openclaw'}", "compat tools.exec.mode"},
		{"an agent", "{agents: {list: [{id: 'a'}, {id: 'b', tools: {deny: ['exec']}}]}}", "{agents: {list: [{id: 'b'}]}}",
			"agents.list[0].tools.deny"},
		{"an agent without its own value",
			"{tools: {exec: {mode: 'deny'}}, agents: {list: [{id: 'a', tools: {exec: {mode: 'ask'}}}]}}",
			"{tools: {exec: {mode: 'deny'}}, agents: {list: [{id: 'a'}]}}", ""},
		{"an agent in the other form", "{agents: {list: [{id: 'a', sandbox: {mode: 'all'}}]}}",
			"{agents: {entries: {a: {}}}}", "agents.entries.a.sandbox.mode"},
		{"who may write",
			"{channels: {telegram: {allowFrom: ['1'], dmPolicy: 'allowlist', accounts: {x: {groupPolicy: 'disabled'}}}}}",
			"{channels: {telegram: {allowFrom: ['1', '2'], dmPolicy: 'open', accounts: {x: {}}}}}",
			"channels.telegram.accounts.x.groupPolicy channels.telegram.allowFrom channels.telegram.dmPolicy"},
		{"everybody might already", "{channels: {telegram: {allowFrom: ['*']}}}",
			"{channels: {telegram: {allowFrom: ['*', '2']}}}", ""},
		{"a channel is gone", "{channels: {telegram: {dmPolicy: 'disabled'}}}", "{}", ""},
		{"another group", "{channels: {telegram: {groups: {'-1': {allowFrom: ['1']}}}}}",
			"{channels: {telegram: {groups: {'-1': {}, '-2': {}}}}}",
			"channels.telegram.groups channels.telegram.groups.-1.allowFrom"},
		{"a group is gone", "{channels: {telegram: {groups: {'-1': {allowFrom: ['1']}, '-2': {}}}}}",
			"{channels: {telegram: {groups: {'-2': {}}}}}", ""},
		{"money", "{budget: {usdPerDay: 5}, agents: {defaults: {budget: {toolCalls: 10, usd: 1}}}}",
			"{budget: {usdPerDay: 4}, agents: {defaults: {budget: {toolCalls: -1}}}}",
			"agents.defaults.budget.toolCalls agents.defaults.budget.usd"},
		{"the default is more", "{agents: {defaults: {budget: {toolCalls: 10}}}}",
			"{agents: {defaults: {budget: {toolCalls: 0}}}}", "agents.defaults.budget.toolCalls"},
		{"a rule that denies", "{session: {sendPolicy: {rules: [{action: 'deny', match: {channel: 'x'}}, {action: 'allow', match: {channel: 'y'}}]}}}", "{session: {sendPolicy: {rules: [{action: 'deny', match: {channel: 'x'}}]}}}", ""},
		{"who may connect", "{gateway: {bind: 'loopback', auth: {mode: 'password'}}}",
			"{gateway: {bind: 'lan', auth: {mode: 'none'}, controlUi: {allowedOrigins: ['https://x']}}}",
			"gateway.auth.mode gateway.bind gateway.controlUi.allowedOrigins"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := strings.Join(mustLoad(t, tc.was).Loosened(mustLoad(t, tc.is)), " ")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("every right is a known key", func(t *testing.T) {
		root := known()
		for at, list := range map[string][]right{
			"":                 rights[:],
			"tools.":           toolRights[:],
			"agents.defaults.": agentRights[:],
			"channels.*.":      chatRights[:],
		} {
			for _, r := range list {
				steps := strings.Split(strings.ReplaceAll(at+r.path, "+", "*"), ".")
				if n := root.at(steps); n == nil {
					t.Errorf("%s%s is unknown", at, r.path)
				}
			}
		}
	})
}
