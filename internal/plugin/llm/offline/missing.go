package offline

import (
	"github.com/chela-ai/chela/internal/core/llm"
)

// Ways to say that a file is to be created only if it does not exist: before and after the
// request. Their groups are its name, if it is said.
var (
	missingHead = lazy(
		`(?i)^(?:please\s+)?(?:if (?:there is no|there's no) (?:file )?(?:called |named )?([\x{E000}-\x{E0FF}])(?: yet)?|` +
			`(?:if|as long as) (?:the file )?([\x{E000}-\x{E0FF}]) (?:does not|doesn'?t) (?:already |yet )?exist(?: yet| already)?|if (?:the file )?([\x{E000}-\x{E0FF}]) is (?:missing|not there)|` +
			`unless (?:the file )?([\x{E000}-\x{E0FF}]) (?:already )?exists(?: already)?)\s*,?\s*(?:then\s+)?(?:please\s+)?` +
			`|^(?:如果|要是|假如|若是?|当)?\s*(?:还?没有|缺少?)\s*(?:文件)?\s*([\x{E000}-\x{E0FF}])\s*(?:这个)?(?:文件)?(?:的话|时)?\s*[，,]?\s*(?:那?就|则)?\s*` +
			`|^(?:如果|要是|假如|若是?|当)?\s*(?:文件)?\s*([\x{E000}-\x{E0FF}])\s*(?:这个)?(?:文件)?(?:还)?(?:不存在|不在|没有)(?:的话|时)?\s*[，,]?\s*(?:那?就|则)?\s*` +
			`|^除非\s*(?:文件)?\s*([\x{E000}-\x{E0FF}])\s*(?:这个)?(?:文件)?(?:已经?|早就)?存在(?:了)?\s*[，,]?\s*(?:否则|不然)?(?:就)?\s*`)
	missingTail = lazy(`(?i)[\s,]+(?:but )?(?:only )?(?:unless (?:it|the file|that file|([\x{E000}-\x{E0FF}])) (?:already )?(?:exists|is (?:already )?there)(?: already)?|` +
		`if (?:it|the file|that file|([\x{E000}-\x{E0FF}])) (?:(?:does not|doesn'?t) (?:already |yet )?exist(?: yet| already)?|is (?:missing|not (?:already )?there)))[\s.!]*$` +
		`|[，,\s]*(?:如果|要是|前提是|除非)?(?:它|该文件|这个文件|文件)?(?:还不存在|不存在|没有的话)(?:的话|才行|时)?[\s。！]*$|[，,\s]*除非(?:它|该文件|这个文件|文件)?已经?存在[\s。！]*$`)
)

// ifMissing returns the step for a request to create a file only if it does not exist; nil:
// the clause is another request.
func (t *turn) ifMissing(c clause) *step {
	form := missingHead()
	at := form.FindStringSubmatchIndex(c.text)
	if at == nil {
		form = missingTail()
		at = form.FindStringSubmatchIndex(c.text)
	}
	if at == nil || at[0] == 0 && at[1] == len(c.text) {
		return nil
	}
	path := t.path
	s := t.parse(c.with(c.text[:at[0]] + " " + c.text[at[1]:]))
	named := ""
	for i := 2; i < len(at); i += 2 {
		if at[i] >= 0 {
			named = c.expand(c.text[at[i]:at[i+1]])
		}
	}
	if s == nil || s.row.intent != "write" || len(s.calls) != 1 || named != "" && named != topic(s.calls[0]) {
		t.path = path
		return nil
	}
	return lookFirst(s)
}

// lookFirst returns a step that does another one only if its file does not exist.
func lookFirst(s *step) *step {
	write := s.calls
	look := callStep("read", "path", topic(write[0]), "limit", 1)
	look.row, look.allowMissing, look.hidden = s.row, true, true
	look.then = func(r result) []llm.ToolCall {
		if r.isMissing() {
			return write
		}
		return nil
	}
	look.render = func(t *turn, r result) string {
		if r.call.Name == "read" {
			return t.localize(existsText, "`"+topic(r.call)+"`")
		}
		return t.show(r)
	}
	return look
}

var existsText = localized{"%s exists already, so I left it as it is.", "%s 已经存在，所以没有改动。"}
