package job

import (
	"strings"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
)

// namespace is of the ids that are derived from tool calls.
var namespace = uuid.MustParse("3f0b2a0e-9d1f-5c3a-8f43-6a1f0d6f7c21")

// IDOf returns the id of the job that a tool call adds. It depends only on the id of the
// call, so that a repeated call finds the job that exists.
func IDOf(call string) ID { return ID(uuid.NewSHA1(namespace, []byte(call)).String()) }

// minPrefix is the minimum length of the beginning of an id.
const minPrefix = 4

// Find returns the job that a person or a model means: by its id, the beginning of it, or
// its name.
func Find(jobs []Job, ref string) (Job, error) {
	ref = strings.TrimSpace(ref)
	var found []Job
	for _, match := range [...]func(Job) bool{
		func(j Job) bool { return string(j.ID) == ref },
		func(j Job) bool {
			return len(ref) >= minPrefix && strings.HasPrefix(string(j.ID), strings.ToLower(ref))
		},
		func(j Job) bool { return strings.EqualFold(j.Name, ref) || strings.EqualFold(j.DisplayName, ref) },
	} {
		for _, j := range jobs {
			if ref != "" && match(j) {
				found = append(found, j)
			}
		}
		switch len(found) {
		case 0:
			continue
		case 1:
			return found[0], nil
		}
		return Job{}, invalid("%d jobs match %q; give the id of one", len(found), ref)
	}
	if ref == "" {
		return Job{}, invalid("id is required: which job?")
	}
	return Job{}, chela.Errorf(chela.CodeNotFound, "there is no job %q", ref)
}

// ScratchSetting returns the name of the setting that holds the text which clients keep
// with a job. It ends with the job.
func ScratchSetting(id ID) string { return "cron.scratch." + string(id) }
