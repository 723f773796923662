package config

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestRounded changes configurations as clients do whose numbers are doubles.
func TestRounded(t *testing.T) {
	t.Parallel()
	const ids = "{channels: {discord: {allowFrom: [123456789012345678, 123456789012345679, 123456789012345698], owner: 123456789012345677, port: 7}}}"
	for _, tc := range []struct {
		name   string
		change func(client map[string]any) // the section discord, as the client has it
		want   string                      // the file; a part of the error with !
	}{
		{"nothing", func(map[string]any) {}, ids},
		{"another value", func(d map[string]any) { d["port"] = 8 }, strings.Replace(ids, "7}", "8}", 1)},
		{"an id in quotes is added", func(d map[string]any) { d["allowFrom"] = append(d["allowFrom"].([]any), "5") },
			strings.Replace(ids, "98]", `98, "5"]`, 1)},
		{"the only id with its double is removed", func(d map[string]any) { d["allowFrom"] = d["allowFrom"].([]any)[:2] },
			strings.Replace(ids, ", 123456789012345698", "", 1)},
		{"one of two with the same double is removed", func(d map[string]any) { d["allowFrom"] = d["allowFrom"].([]any)[1:] },
			"!channels.discord.allowFrom[0]: a number of more than 15 digits"},
		{"an id is added", func(d map[string]any) { d["allowFrom"] = append(d["allowFrom"].([]any), 3e17) },
			"!channels.discord.allowFrom[3]: a number of more than 15 digits"},
		{"an id is changed", func(d map[string]any) { d["owner"] = 3e17 },
			"!channels.discord.owner: a number of more than 15 digits"},
		{"an id gets its quotes", func(d map[string]any) { d["owner"] = "123456789012345677" },
			strings.Replace(ids, "owner: 123456789012345677", `owner: "123456789012345677"`, 1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(write(t, map[string]string{"chela.json": ids}), "chela.json")
			tr, err := Options{Env: env()}.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			var client map[string]any // with doubles
			if err := json.Unmarshal(tr.Written(), &client); err != nil {
				t.Fatal(err)
			}
			tc.change(client["channels"].(map[string]any)["discord"].(map[string]any))
			text, err := json.Marshal(client)
			if err != nil {
				t.Fatal(err)
			}
			d, err := tr.Rewrite(text)
			if want, refused := strings.CutPrefix(tc.want, "!"); refused {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %s", err, want)
				}
				return
			}
			if err == nil {
				_, err = d.Write()
			}
			if got := read(t, file); err != nil || got != tc.want {
				t.Errorf("%v: the file is %s, want %s", err, got, tc.want)
			}
		})
	}
	t.Run("a warning says to put ids in quotes, and does not show them", func(t *testing.T) {
		var all []string
		for _, p := range mustLoad(t, ids).Warnings() {
			if strings.Contains(p.Message, "in quotes") {
				all = append(all, p.String())
			}
		}
		if len(all) != 4 || !strings.HasPrefix(all[0], "channels.discord.allowFrom[0]: put this number in quotes") ||
			strings.Contains(strings.Join(all, ""), "1234") {
			t.Errorf("%q", all)
		}
	})
	t.Run("an id as a new value is refused before it is written", func(t *testing.T) {
		tr := mustLoad(t, ids)
		for _, e := range []Edit{{"channels.discord.allowFrom[0]", []byte("323456789012345678")},
			{"channels.discord", []byte("{a: 323456789012345678}")}} {
			if _, err := tr.Draft(e); err == nil {
				t.Errorf("%s is accepted", e.Path)
			}
		}
	})
}
