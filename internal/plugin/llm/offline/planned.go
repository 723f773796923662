package offline

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/timephrase"
)

// jobsOf reads a list of jobs. They are sorted by the time at which they run next.
func jobsOf(r result) (jobs []job.Listed, ok bool) {
	for line := range strings.Lines(r.text) {
		if j, ok := job.ParseLine(strings.TrimSpace(line)); ok {
			jobs = append(jobs, j)
		}
	}
	slices.SortStableFunc(jobs, func(a, b job.Listed) int {
		if a.Next.IsZero() != b.Next.IsZero() {
			return cmp.Compare(b.Next.Unix(), a.Next.Unix())
		}
		return a.Next.Compare(b.Next)
	})
	return jobs, len(jobs) > 0 || r.text == job.NoJobs
}

// listJobs returns the call that lists all jobs.
func listJobs() *step { return callStep("cron", "action", "list") }

// planned lists the jobs.
func planned(*turn, match) *step {
	s := listJobs()
	s.render = func(t *turn, r result) string {
		jobs, ok := jobsOf(r)
		switch {
		case !ok:
			return t.show(r)
		case len(jobs) == 0:
			return t.localize(nothingPlannedText)
		}
		return t.localize(plannedText, t.jobLines(jobs)) + t.more(r)
	}
	return s
}

// more returns a line if the tool did not list all jobs.
func (t *turn) more(r result) string {
	last := r.text[strings.LastIndexByte(r.text, '\n')+1:]
	n, ok := strings.CutSuffix(strings.TrimPrefix(last, "and "), " more")
	if !ok || n == last {
		return ""
	}
	return "\n\n" + t.localize(moreJobsText, n)
}

// jobLines returns a line for each job.
func (t *turn) jobLines(jobs []job.Listed) string {
	var lines []string
	for _, j := range jobs {
		when := t.schedule(j.Schedule)
		if j.Trigger != nil {
			_, object := j.Trigger.Parts()
			when = t.localize(whenChangesText, object)
		}
		switch {
		case j.Off:
			when += t.localize(pausedText)
		case j.Schedule.Kind != job.KindAt && j.Trigger == nil && !j.Next.IsZero():
			when = t.localize(nextText, when, t.instant(j.Next))
		}
		lines = append(lines, "- "+t.localize(jobText, j.Title, when))
	}
	return strings.Join(lines, "\n")
}

func cancel(t *turn, m match) *step { return t.change(m, canceledText, "action", "remove") }
func pause(t *turn, m match) *step {
	return t.change(m, pausedJobText, "action", "update", "patch", map[string]any{"enabled": false})
}
func resume(t *turn, m match) *step {
	return t.change(m, resumedText, "action", "update", "patch", map[string]any{"enabled": true})
}
func runNow(t *turn, m match) *step { return t.change(m, ranText, "action", "run") }

// it are words for the job that was spoken of.
var it = lazy(`(?i)^(?:it|that|this|that one|this one|one|them|all|请|它|那个|这个|所有|全部|了|的)?$`)

// change looks for the job that the words of a request mean, and calls the tool for it. If
// there is not exactly one, it says so.
func (t *turn) change(m match, done localized, args ...any) *step {
	words := m.quoted("q")
	if m.slots["last"] != "" && t.job == "" {
		return nil
	}
	if it().MatchString(words) {
		words = ""
		if !everyWord().MatchString(m.text) {
			words = t.job
		}
	}
	if w := others().FindString(words); w != "" {
		return &step{left: m.named(w)}
	}
	var found []job.Listed
	var jobs []job.Listed
	readable := true
	s := listJobs()
	s.hidden = true
	s.then = func(r result) []llm.ToolCall {
		if jobs, readable = jobsOf(r); readable {
			found = findJobs(jobs, words)
		}
		if len(found) != 1 {
			return nil
		}
		return callStep("cron", append(slices.Clone(args), "jobId", string(found[0].ID))...).calls
	}
	s.render = func(t *turn, r result) string {
		switch {
		case !readable:
			return t.show(r)
		case len(found) == 1 && strings.HasPrefix(r.text, "Not started"):
			return t.show(r)
		case len(found) == 1:
			return t.localize(done, found[0].Title)
		}
		t.unable = true
		switch {
		case len(jobs) == 0:
			return t.localize(nothingPlannedText)
		case len(found) == 0:
			return t.localize(noJobText, clip(words, 120), t.jobLines(jobs)) + t.more(r)
		}
		return t.localize(whichJobText, t.jobLines(found))
	}
	return s
}

var (
	others    = lazy(`(?i)^(?:except|but|excluding|unless|other than)\b.*|除.*|.*(?:以外|之外)`)
	everyWord = lazy(`(?i)\b(?:all|every|any)\b|所有|全部`)
	// jobWords are words that say nothing about a job.
	jobWords = lazy(`(?i)\b(?:the|an?|my|me|i|to|about|for|of|that|this|with|on|at|in|is|named|called|please|now|reminders?|alarms?|timers?|jobs?|file|page)\b|[^\p{L}\p{N}]+`)
	hanForm  = lazy(`\p{Han}+`)
)

// findJobs returns the jobs that fit the words best; all jobs if there are no words.
func findJobs(jobs []job.Listed, words string) []job.Listed {
	words = strings.ToLower(timephrase.Fold(strings.TrimSpace(words)))
	if words == "" {
		return jobs
	}
	var found []job.Listed
	best := 0.5
	for _, j := range jobs {
		if words == strings.ToLower(string(j.ID)) {
			return []job.Listed{j}
		}
		score := fitOf(j, words)
		if score > best {
			best, found = score, nil
		}
		if score == best {
			found = append(found, j)
		}
	}
	return found
}

// fitOf returns which part of the words is in a job: 2 if they are its text.
func fitOf(j job.Listed, words string) float64 {
	about := strings.ToLower(timephrase.Fold(j.Title))
	if j.Trigger != nil {
		about += "\n" + strings.ToLower(j.Trigger.Script)
	}
	if slices.Contains(strings.Split(about, "\n"), words) {
		return 2
	}
	have := map[string]bool{}
	for _, w := range strings.FieldsFunc(about, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		have[stem(w)] = true
	}
	hits, all := 0, 0
	for _, w := range strings.Fields(jobWords().ReplaceAllString(hanForm().ReplaceAllString(words, " "), " ")) {
		all++
		if have[stem(w)] {
			hits++
		}
	}
	for _, run := range hanForm().FindAllString(words, -1) { // Chinese has no spaces: pairs of characters
		r := []rune(run)
		if len(r) == 1 || strings.Contains(about, run) {
			all++
			if strings.Contains(about, run) {
				hits++
			}
			continue
		}
		for i := range len(r) - 1 {
			all++
			if strings.Contains(about, string(r[i:i+2])) {
				hits++
			}
		}
	}
	if all == 0 {
		return 0
	}
	return float64(hits) / float64(all)
}

// stem returns a word without a usual ending.
func stem(w string) string {
	for _, end := range []string{"ing", "ed", "es", "s", "e"} {
		if s, ok := strings.CutSuffix(w, end); ok && len(s) >= 3 {
			return s
		}
	}
	return w
}

var (
	plannedText        = localized{"Planned:\n\n%s", "计划如下：\n\n%s"}
	nothingPlannedText = localized{"Nothing is planned.", "目前没有任何计划。"}
	jobText            = localized{"%s: %s", "%s：%s"}
	nextText           = localized{"%s, next %s", "%s（下次：%s）"}
	whenChangesText    = localized{"when %s changes", "%s 有变化时"}
	pausedText         = localized{" (paused)", "（已暂停）"}
	moreJobsText       = localized{"There are %s more, which are not shown: `chela cron list`",
		"还有 %s 项没有显示：`chela cron list`"}
	canceledText  = localized{"Canceled: %s", "已取消：%s"}
	pausedJobText = localized{"Paused: %s", "已暂停：%s"}
	resumedText   = localized{"Resumed: %s", "已恢复：%s"}
	ranText       = localized{"Started now: %s", "已立即执行：%s"}
	noJobText     = localized{"Nothing that is planned fits “%s”, so I changed nothing. Planned:\n\n%s",
		"没有找到与“%s”相符的计划，什么都没有改动。计划如下：\n\n%s"}
	whichJobText = localized{"Which one do you mean? I changed nothing yet.\n\n%s", "你指的是哪一个？我还没有改动。\n\n%s"}
)
