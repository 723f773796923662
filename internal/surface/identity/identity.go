// Package identity keeps what this machine is for gateways on other machines: the key of a
// device, and the tokens that gateways gave it. The node and the command line have one each.
package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

// State is a file with an identity of this machine. Only its owner can read it.
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

// Open reads the file at path, and makes it if there is none. Of several processes that make
// it at the same time, one does, and the others read it.
func Open(path string) (*State, error) {
	s := &State{path: path}
	err := s.read()
	if errors.Is(err, fs.ErrNotExist) {
		if err = s.make(); err == nil {
			err = s.read()
		}
	}
	if err == nil {
		s.key, err = keyOf(s.data.Seed)
	}
	if err != nil {
		return nil, fmt.Errorf("identity of this machine, %s: %w", path, err)
	}
	return s, nil
}

// read reads the file.
func (s *State) read() error {
	b, err := os.ReadFile(s.path)
	if err != nil {
		return err
	}
	var d stateData
	if err := json.Unmarshal(b, &d); err != nil {
		return err
	}
	s.data = d
	return nil
}

// make makes the file with a new key, unless there is one.
func (s *State) make() error {
	d := stateData{Seed: make([]byte, ed25519.SeedSize)}
	rand.Read(d.Seed) // it never fails
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Dir(s.path))
	if err != nil {
		return err
	}
	defer root.Close()
	err = atomicfile.CreateIn(root, filepath.Base(s.path), 0o600, func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// Key returns the key of the device.
func (s *State) Key() ed25519.PrivateKey { return s.key }

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
func (s *State) Paired(url string) bool { return s.Token(url) != "" }

// Token returns the token that a gateway gave this machine; "": none.
func (s *State) Token(url string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.Tokens[url]
}

// SetToken stores the token of a gateway; "": there is none any more.
func (s *State) SetToken(url, token string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.read(); err != nil { // another process may have changed it
		return fmt.Errorf("identity of this machine: %w", err)
	}
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
		return fmt.Errorf("identity of this machine: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return fmt.Errorf("identity of this machine: %w", err)
	}
	if err := atomicfile.Write(s.path, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("identity of this machine: %w", err)
	}
	return nil
}

// keyOf makes a key from its seed.
func keyOf(seed []byte) (ed25519.PrivateKey, error) {
	if len(seed) != ed25519.SeedSize {
		return nil, errors.New("the key is damaged")
	}
	return ed25519.NewKeyFromSeed(slices.Clone(seed)), nil
}
