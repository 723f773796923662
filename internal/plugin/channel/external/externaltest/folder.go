package externaltest

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// poll is the time between looks at the folders.
const poll = 5 * time.Millisecond

// Folder is a chat in folders, as docs/examples/folderchat: CHAT/in has the messages of a
// person, a file each, and CHAT/out the answers.
type Folder string

// Say writes a message of a person and waits until the program has passed it on.
func (f Folder) Say(ctx context.Context, chat, id, text string) error {
	dir := filepath.Join(string(f), chat, "in")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file := filepath.Join(dir, id+".txt")
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		return err
	}
	if err := os.Rename(file+".new", file); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		pause(ctx)
	}
	return ctx.Err()
}

// Shown returns the answers in a chat, oldest first.
func (f Folder) Shown(chat string) (texts []string) {
	files, _ := filepath.Glob(filepath.Join(string(f), chat, "out", "*.txt"))
	for _, file := range files { // Glob sorts them, and the names begin with the time
		text, err := os.ReadFile(file)
		if err == nil {
			texts = append(texts, string(text))
		}
	}
	return texts
}

func pause(ctx context.Context) {
	t := time.NewTimer(poll)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

type object = map[string]any

type params struct {
	Key  string `json:"key"`
	Chat struct {
		ID   string `json:"id"`
		Kind string `json:"kind"`
	} `json:"chat"`
	ID   string  `json:"id"`
	Text *string `json:"text"`
}

// folderRun is a running Folder.
type folderRun struct {
	dir string
	ids atomic.Int64

	mu      sync.Mutex // of out
	out     io.Writer
	waiting sync.Map // answers by ids
}

// Run is the program.
func (f Folder) Run(ctx context.Context, in io.Reader, out, _ io.Writer) int {
	ctx, cancel := context.WithCancel(ctx)
	r := &folderRun{dir: string(f), out: out}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m struct {
			ID     int64           `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
			Error  json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return 2
		}
		if m.Method == "" {
			if c, ok := r.waiting.LoadAndDelete(m.ID); ok {
				c.(chan bool) <- m.Error == nil
			}
			continue
		}
		if m.Method == "initialize" {
			wg.Go(func() { r.watch(ctx) })
		}
		var p params
		_ = json.Unmarshal(m.Params, &p) // those of initialize have another form
		result, fault := r.do(m.Method, p)
		if fault != nil {
			r.write(object{"id": m.ID, "error": fault})
		} else {
			r.write(object{"id": m.ID, "result": result})
		}
	}
}

func (r *folderRun) write(m object) {
	m["jsonrpc"] = "2.0"
	line, _ := json.Marshal(m)
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.out.Write(append(line, '\n'))
}

// do executes a request.
func (r *folderRun) do(method string, p params) (result, fault object) {
	if method == "initialize" {
		return object{"protocolVersion": 1, "name": "folders", "abilities": []string{"delete", "edit", "find"}}, nil
	}
	if p.Chat.ID == "" || strings.ContainsAny(p.Chat.ID, `/\.`) || p.Chat.Kind == "" {
		return nil, object{"code": -32000, "message": "no such chat", "data": object{"permanent": true}}
	}
	dir := filepath.Join(r.dir, p.Chat.ID, "out")
	_ = os.MkdirAll(dir, 0o700)
	sum := sha256.Sum256([]byte(p.Key))
	key := hex.EncodeToString(sum[:8])
	found, _ := filepath.Glob(filepath.Join(dir, "*-"+key+".txt"))
	file := filepath.Join(dir, p.ID+".txt")
	switch method {
	case "find":
		if len(found) == 0 {
			return object{"found": false}, nil
		}
		return object{"found": true, "id": strings.TrimSuffix(filepath.Base(found[0]), ".txt")}, nil
	case "send":
		id := fmt.Sprintf("%d-%s", time.Now().UnixNano(), key)
		if len(found) > 0 {
			return object{"id": strings.TrimSuffix(filepath.Base(found[0]), ".txt")}, nil
		}
		_ = os.WriteFile(filepath.Join(dir, id+".txt"), []byte(*p.Text), 0o600)
		return object{"id": id}, nil
	}
	if _, err := os.Stat(file); err != nil {
		return nil, object{"code": -32000, "message": "no such message", "data": object{"gone": true}}
	}
	if method == "delete" {
		_ = os.Remove(file)
	} else {
		_ = os.WriteFile(file, []byte(*p.Text), 0o600)
	}
	return object{}, nil
}

// watch passes on the messages of people.
func (r *folderRun) watch(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx) {
		files, _ := filepath.Glob(filepath.Join(r.dir, "*", "in", "*.txt"))
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			id, answer := r.ids.Add(1), make(chan bool, 1)
			r.waiting.Store(id, answer)
			r.write(object{"id": id, "method": "message", "params": object{
				"id":   strings.TrimSuffix(filepath.Base(file), ".txt"),
				"chat": object{"id": filepath.Base(filepath.Dir(filepath.Dir(file)))}, "text": string(text),
			}})
			select {
			case ok := <-answer:
				if ok {
					_ = os.Remove(file)
				}
			case <-ctx.Done():
				return
			}
		}
	}
}
