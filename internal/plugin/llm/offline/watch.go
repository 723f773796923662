package offline

import (
	"cmp"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/job"
)

// How often files and pages are checked.
const (
	fileInterval = time.Minute
	pageInterval = 5 * time.Minute
)

// tellHead is what asks to be told, which a watch does anyway.
var tellHead = lazy(`(?i)^(?:(?:please|then|just)\s+)*(?:tell|notify|alert|inform|ping|message|warn|remind|let)\s+me(?:\s+know)?\b(?:\s+(?:that|about it|of it|at once|immediately)\b)*[\s:,]*`)

// watch adds a job that is due when a file or a page has changed.
func watch(t *turn, m match) *step {
	mark := []rune(anyMark().FindString(m.slots["x"]))
	object := m.get("x")
	if len(mark) == 0 || object == "" {
		return nil
	}
	check, every := job.CheckFile, fileInterval
	if url := mark[0] >= urlMark && mark[0] < codeMark; url || strings.Contains(object, "://") {
		check, every = job.CheckURL, pageInterval
		if !strings.Contains(object, "://") {
			object = "https://" + object
		}
	}
	do := strings.Trim(m.slots["do"], " \t,，。.：:")
	if w := cmp.Or(headLimit().FindString(do), limitHan().FindString(do), tailExcept().FindString(do)); w != "" {
		return t.cannotKeep(m, w)
	}
	if t.chinese && do != "" && m.slots["tell"] == "" && !t.actionable(m.with(do)) {
		return nil
	}
	do = tellHead().ReplaceAllString(do, "")
	text, turn := m.expand(do), do != "" && t.actionable(m.with(do))
	if do == "" {
		text = t.localize(changedText, object)
	}
	schedule := map[string]any{"kind": job.KindEvery, "everyMs": every.Milliseconds()}
	return t.addJob(schedule, text, turn, map[string]any{"script": check + " " + object, "once": false})
}

var (
	changedText = localized{"%s has changed", "%s 有变化"}
	watchText   = localized{"I will tell you when %s changes. I look %s.", "好的，%s 有变化时我会告诉你（%s检查一次）。"}
	watchDoText = localized{"When %s changes, I will do this: %s. I look %s.", "好的，%s 有变化时我会执行：%s（%s检查一次）。"}
)
