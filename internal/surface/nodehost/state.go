package nodehost

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

// State is the file with the identity of this machine as a node. Only its owner can read it.
type State struct {
	path string
	key  ed25519.PrivateKey

	mu   sync.Mutex
	data stateData
}

// stateData is the content of the file.
type stateData struct {
	Seed   []byte            `json:"seed"`             // of the key of the device
	Tokens map[string]string `json:"tokens,omitempty"` // of the device, by the URL of the gateway
	Last   Gateway           `json:"gateway,omitzero"` // the one of the last start
	Name   string            `json:"displayName,omitempty"`
}

// Gateway is where a gateway is.
type Gateway struct {
	URL string `json:"url"`
	Pin string `json:"fingerprint,omitempty"` // SHA-256 of its certificate; "": the system's roots
}

// File is the name of the file in a state directory.
const File = "node/node.json"

// Open reads the file in a state directory, and makes it if there is none.
func Open(state string) (*State, error) {
	s := &State{path: filepath.Join(state, filepath.FromSlash(File))}
	b, err := os.ReadFile(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.data.Seed = make([]byte, ed25519.SeedSize)
		rand.Read(s.data.Seed) // it never fails
		if err := s.saveLocked(); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, fmt.Errorf("node: %w", err)
	default:
		if err := json.Unmarshal(b, &s.data); err != nil {
			return nil, fmt.Errorf("node: %s: %w", s.path, err)
		}
	}
	if s.key, err = keyOf(s.data.Seed); err != nil {
		return nil, fmt.Errorf("node: %s: %w", s.path, err)
	}
	return s, nil
}

// Exists reports whether a state directory has the file.
func Exists(state string) bool {
	_, err := os.Stat(filepath.Join(state, filepath.FromSlash(File)))
	return err == nil
}

// ID returns the id of the device.
func (s *State) ID() string { return client.DeviceID(s.key) }

// Last returns the gateway and the name of the last start.
func (s *State) Last() (Gateway, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.Last, s.data.Name
}

// SetLast stores the gateway and the name.
func (s *State) SetLast(g Gateway, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.data.Last == g && s.data.Name == name {
		return nil
	}
	s.data.Last, s.data.Name = g, name
	return s.saveLocked()
}

// Paired reports whether a gateway gave this machine a token.
func (s *State) Paired(url string) bool { return s.token(url) != "" }

func (s *State) token(url string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.Tokens[url]
}

// setToken stores the token of a gateway; "": there is none any more.
func (s *State) setToken(url, token string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.data.Tokens[url] == token:
		return nil
	case token == "":
		delete(s.data.Tokens, url)
	case s.data.Tokens == nil:
		s.data.Tokens = map[string]string{url: token}
	default:
		s.data.Tokens[url] = token
	}
	return s.saveLocked()
}

func (s *State) saveLocked() error {
	b, err := json.Marshal(s.data)
	if err != nil {
		return fmt.Errorf("node: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	if err := atomicfile.Write(s.path, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	return nil
}
