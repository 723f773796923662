package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/kit/json5"
)

// maxFile is the maximum size of a file of jobs, in bytes.
const maxFile = 64 << 20

// Rejected is the error about jobs of a file that cannot be used.
type Rejected struct {
	Jobs []error // one for each job; never empty
}

// Error names the first job and the number of the others.
func (r *Rejected) Error() string {
	if n := len(r.Jobs) - 1; n > 0 {
		return fmt.Sprintf("%v (and %s more)", r.Jobs[0], humanize.Many(n, "job"))
	}
	return r.Jobs[0].Error()
}

// Unwrap returns the errors about the single jobs.
func (r *Rejected) Unwrap() []error { return r.Jobs }

// ParseFile reads a file of the form {"version":1,"jobs":[...]}, or of an older one, which
// is the list alone. What is not known of a
// job is kept in Job.Extra: a field of an inner object under its path, like
// "payload.cwd". If some jobs cannot be used, the others are returned with a [*Rejected]
// error; no jobs are returned with any other error.
func ParseFile(raw []byte) ([]Job, error) {
	if len(raw) > maxFile {
		return nil, invalid("the file has %s, at most %s are allowed", humanize.Bytes(int64(len(raw))),
			humanize.Bytes(maxFile))
	}
	v, err := decode(bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")))
	if err != nil {
		if _, where := json5.Parse(raw); where != nil { // it says the line and the column
			err = where
		}
		return nil, invalid("the file is not JSON: %v", err)
	}
	file, _ := v.(map[string]any)
	list, ok := file["jobs"].([]any)
	if bare, is := v.([]any); is {
		list, ok = bare, true
	}
	if version := file["version"]; !ok || version != nil && version != json.Number("1") {
		return nil, invalid(`the file is not a list of jobs; want {"version":1,"jobs":[...]}`)
	}
	if len(list) > MaxJobs {
		return nil, invalid("the file has %d jobs, at most %d are allowed", len(list), MaxJobs)
	}
	x, seen, rejected := newIndex(), map[ID]bool{}, &Rejected{}
	jobs := make([]Job, 0, len(list))
	for i, item := range list {
		j, err := stored(x, item)
		switch {
		case err == nil && j.ID == "":
			err = invalid("id is required")
		case err == nil && seen[j.ID]:
			err = invalid("another job has the same id")
		}
		if err != nil {
			rejected.Jobs = append(rejected.Jobs, fmt.Errorf("job %s: %w", label(i, item), err))
			continue
		}
		seen[j.ID] = true
		jobs = append(jobs, j)
	}
	if len(rejected.Jobs) > 0 {
		return jobs, rejected
	}
	return jobs, nil
}

// label names a job of a file in a message.
func label(i int, item any) string {
	m, _ := item.(map[string]any)
	for _, key := range [...]string{"id", "jobId", "name"} {
		if s, ok := m[key].(string); ok && s != "" {
			return humanize.Truncate(s, 60)
		}
	}
	return fmt.Sprint(i + 1)
}

// stored reads a job of a file.
func stored(x index, item any) (Job, error) {
	m, ok := item.(map[string]any)
	if !ok {
		return Job{}, invalid("want an object")
	}
	m = maps.Clone(m)
	d := draft{index: x, lax: true, values: map[string]value{}}
	base := map[string]any{"enabled": true}
	for _, name := range [...]string{"createdAtMs", "updatedAtMs"} {
		if v, ok := m[name]; ok {
			n, err := toInt(v, name)
			if err != nil {
				return Job{}, err
			}
			base[name] = n
			delete(m, name)
		}
	}
	state, _ := m["state"].(map[string]any)
	if state != nil {
		delete(m, "state")
	}
	if err := d.object("", m); err != nil {
		return Job{}, err
	}
	j, err := d.job(base)
	if err != nil {
		return Job{}, err
	}
	return j, j.restore(state)
}

// restore sets the state from a file. What it does not know is kept. Nothing runs.
func (j *Job) restore(state map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(state)) {
		target, v := name, state[name]
		if name == "lastStatus" && state["lastRunStatus"] == nil {
			target = "lastRunStatus"
		}
		raw, err := json.Marshal(map[string]any{target: v})
		if err != nil {
			return err
		}
		next := j.State
		known := json.NewDecoder(bytes.NewReader(raw))
		known.DisallowUnknownFields()
		if known.Decode(&next) == nil {
			j.State = next
			continue
		}
		if j.Extra == nil {
			j.Extra = map[string]json.RawMessage{}
		}
		if j.Extra["state."+name], err = json.Marshal(v); err != nil {
			return err
		}
	}
	j.State.Running, j.State.Run, j.State.Retries = 0, "", 0
	if s := j.State.LastStatus; s != "" && s != OK && s != Failed && s != Skipped {
		j.State.LastStatus = ""
	}
	return nil
}

// WriteFile returns the jobs in the form that [ParseFile] reads, without what is private
// to this gateway.
func WriteFile(jobs []Job) ([]byte, error) {
	list := make([]map[string]any, 0, len(jobs))
	for _, j := range jobs {
		extra := j.Extra
		j.Extra, j.Source = nil, ""
		j.State.Run, j.State.Retries = "", 0
		m, err := toMap(j)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", j.ID, err)
		}
		delete(m, "principal")
		delete(m, "address")
		for path, raw := range extra {
			if v, err := decode(raw); err == nil {
				add(m, path, v)
			}
		}
		list = append(list, m)
	}
	b, err := json.MarshalIndent(map[string]any{"version": 1, "jobs": list}, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}

// add sets the value at a path that an object does not have yet.
func add(m map[string]any, path string, v any) {
	if object, name, ok := strings.Cut(path, "."); ok {
		if inner, ok := m[object].(map[string]any); ok {
			add(inner, name, v)
			return
		}
	}
	if _, ok := m[path]; !ok {
		m[path] = v
	}
}
