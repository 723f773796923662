package openclaw

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Job is a scheduled job.
type Job struct {
	ID    string
	Name  string
	Agent string          // "": the default one
	Own   bool            // OpenClaw made it for itself
	JSON  json.RawMessage // in the form of jobs.json
	File  string
}

// ownJobs are the beginnings of the declaration keys of jobs that OpenClaw makes for
// itself.
var ownJobs = [...]string{"heartbeat:", "memory-core:", "skill-collection-review:", "openclaw:"}

// jobsFile is the file of jobs of older versions.
const jobsFile = "cron/jobs.json"

// Jobs returns the scheduled jobs, whatever path of jobs.json the database has them under.
func (h *Home) Jobs(ctx context.Context) []Job {
	var all []Job
	add := func(file string, raw map[string]json.RawMessage) {
		j := Job{ID: text(raw["id"]), Name: text(raw["name"]), Agent: text(raw["agentId"]), File: file}
		if j.ID == "" {
			j.ID = text(raw["jobId"])
		}
		key := text(raw["declarationKey"])
		j.Own = slices.ContainsFunc(ownJobs[:], func(p string) bool { return strings.HasPrefix(key, p) })
		if j.ID != "" && slices.ContainsFunc(all, func(o Job) bool { return o.ID == j.ID }) {
			// A file that was moved to the database has the same jobs.
			if file != jobsFile || slices.ContainsFunc(all, func(o Job) bool { return o.ID == j.ID && o.File == file }) {
				h.problem(file, fmt.Errorf("two jobs have the id %s; the second is left out", j.ID))
			}
			return
		}
		var err error
		if j.JSON, err = json.Marshal(raw); err == nil {
			all = append(all, j)
		}
	}
	h.rows(ctx, stateDB, "cron_jobs", nil, []string{"store_key", "sort_order"},
		[]string{"job_id", "job_json"}, func(r row) error {
			var raw map[string]json.RawMessage
			if err := json.Unmarshal([]byte(r.text("job_json")), &raw); err != nil {
				h.problem(stateDB, fmt.Errorf("job %s: %w", r.text("job_id"), err))
				return nil
			}
			if state := r.text("state_json"); json.Valid([]byte(state)) {
				raw["state"] = json.RawMessage(state)
			}
			if id, err := json.Marshal(r.text("job_id")); err == nil {
				raw["id"] = id
			}
			add(stateDB, raw)
			return nil
		})
	var file jobList
	if h.readJSON(jobsFile, &file) {
		for i, item := range file[:min(len(file), maxList)] {
			var raw map[string]json.RawMessage
			if err := json.Unmarshal(item, &raw); err != nil {
				h.problem(jobsFile, fmt.Errorf("job %d: %w", i+1, err))
				continue
			}
			add(jobsFile, raw)
		}
	}
	return all
}

// jobList are the jobs of a file: {"jobs": [...]}, or the list alone in an older form.
type jobList []json.RawMessage

// UnmarshalJSON reads either form.
func (l *jobList) UnmarshalJSON(b []byte) error {
	var list []json.RawMessage
	if json.Unmarshal(b, &list) == nil {
		*l = list
		return nil
	}
	var file struct {
		Jobs []json.RawMessage `json:"jobs"`
	}
	err := json.Unmarshal(b, &file)
	*l = file.Jobs
	return err
}

// Heartbeats returns the texts of HEARTBEAT.md that newer versions keep in the database,
// by agent.
func (h *Home) Heartbeats(ctx context.Context) map[string]string {
	ids := map[string]string{}
	for _, j := range h.Jobs(ctx) {
		if j.Own && j.Name == "heartbeat-"+j.Agent && j.Agent != "" {
			ids[j.ID] = j.Agent
		}
	}
	out := map[string]string{}
	h.rows(ctx, stateDB, "cron_job_scratch", nil, nil, []string{"job_id", "content"}, func(r row) error {
		if s := strings.TrimSpace(r.text("content")); s != "" && ids[r.text("job_id")] != "" {
			out[ids[r.text("job_id")]] = s + "\n"
		}
		return nil
	})
	return out
}

// text returns a JSON string; "" for anything else.
func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // another kind of value is no text
	return s
}
