package model

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/llm"
)

// findLocal asks the usual ports of this machine for a model server. A port
// where nobody listens answers at once.
func (m *Set) findLocal(ctx context.Context) (llm.Ref, bool) {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	found := make([]string, len(locals))
	var wg sync.WaitGroup
	for i, l := range locals {
		wg.Go(func() { found[i] = m.firstModel(ctx, l.url) })
	}
	wg.Wait()
	for i, id := range found {
		if id != "" {
			return llm.Ref{Provider: locals[i].id, Model: id}, true
		}
	}
	return llm.Ref{}, false
}

func (m *Set) firstModel(ctx context.Context, url string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/models", nil)
	if err != nil {
		return ""
	}
	res, err := m.o.HTTP.Do(req)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	err = json.NewDecoder(http.MaxBytesReader(nil, res.Body, 1<<20)).Decode(&list)
	if err != nil || res.StatusCode != http.StatusOK || len(list.Data) == 0 {
		return ""
	}
	return list.Data[0].ID
}
