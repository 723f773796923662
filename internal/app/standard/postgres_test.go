package standard_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/plugin/store/postgres/postgrestest"
)

// TestPostgres opens the database that a configuration selects.
func TestPostgres(t *testing.T) {
	server := postgrestest.Start(t)
	address := strings.Replace(server.URL(), "chela@", "chela:hidden@", 1)
	r := standard.New()
	for raw, want := range map[string]string{
		``:                       "chela.db",
		`{}`:                     "chela.db",
		`{"postgres": ""}`:       "chela.db",
		`{"postgres": "env:DB"}`: "",
	} {
		s, err := r.StoreOf(func(string) json.RawMessage { return json.RawMessage(raw) }, nil, "")
		if err != nil || s.File != want {
			t.Errorf("%s selects a store with the file %q, %v; want %q", raw, s.File, err, want)
		}
	}
	section := func(path string) json.RawMessage {
		if path != "storage" {
			t.Errorf("the section %q was read", path)
		}
		return json.RawMessage(`{"postgres": "env:DB"}`)
	}
	env := func(name string) string { return map[string]string{"DB": address}[name] }
	s, err := r.StoreOf(section, env, "/state")
	if err != nil {
		t.Fatal(err)
	}
	db, err := s.Open(t.Context(), "", standard.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	where := db.(standard.Located).Location()
	if !strings.Contains(where, "127.0.0.1") || strings.Contains(where, "hidden") {
		t.Errorf("location %s", where)
	}
	host, _ := os.Hostname()
	if got, want := server.Exec(t, address, "SELECT name FROM owner"),
		fmt.Sprintf("%s (process %d, /state)", host, os.Getpid()); got != want {
		t.Errorf("owner %q, want %q", got, want)
	}
	if s.Hint == "" {
		t.Error("no hint how the database is copied")
	}
}
