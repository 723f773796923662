package offline

import (
	"regexp"
	"strings"
	"time"
)

// saying is a text of a tool, as an expression, and what it says in Chinese.
type saying struct {
	form func() *regexp.Regexp
	zh   string
}

// sayings are the texts of tools that a reply repeats.
var sayings = []saying{
	{lazy(`^Created (.+) \((.+)\)\.$`), "已创建 `$1`（$2）。"},
	{lazy(`^Replaced (.+) \((.+)\)\.$`), "已重写 `$1`（$2）。"},
	{lazy(`^(?:Created|Replaced) (.+) \((.+?)\)\. Its earlier content .*$`), "已重写 `$1`（$2）。原来的内容太大，没有保留，因此无法撤销。"},
	{lazy(`^Edited (.+) at line (\d+).*$`), "已修改 `$1` 的第 $2 行。"},
	{lazy(`^(.+) is empty\.$`), "`$1` 是空的。"},
	{lazy(`^(.+) is a binary file.*$`), "`$1` 是二进制文件，无法显示。"},
	{lazy(`^(.+) does not exist$`), "`$1` 不存在"},
	{lazy(`^(.+) is a folder.*$`), "`$1` 是文件夹"},
	{lazy(`^(.+) is outside the workspace.*$`), "`$1` 在工作区之外"},
	{lazy(`^oldText does not occur in (.+?)(?:;.*)?$|^the text does not occur in (.+)$`), "`$1$2` 里没有要替换的文字"},
	{lazy(`^oldText occurs (\d+) times in (.+?)(?:;.*)?$|^the text occurs (\d+) times in (.+)$`), "要替换的文字在 `$2$4` 里出现了 $1$3 次"},
	{lazy(`^(?:oldText and newText|the old and the new text) are the same$`), "新旧文字相同"},
	{lazy(`^exit code (\d+)$`), "退出码 $1"},
	{lazy(`^timed out after (.+)$`), "超过 $1 仍未结束"},
	{lazy(`^ended by (.+)$`), "被 $1 终止"},
	{lazy(`^not run: it needs an approval, and nobody could be asked$`), "没有执行：无人可以批准"},
	{lazy(`^not run: denied$`), "没有执行：已被拒绝"},
	{lazy(`^not run: denied by (.+)$`), "没有执行：$1 拒绝了"},
	{lazy(`^not run: the approval request expired without an answer$`), "没有执行：没有人回答批准请求"},
	{lazy(`^error$`), "失败"}, {lazy(`^timeout$`), "超时"}, {lazy(`^killed$`), "已停止"},
}

// tell returns a text of a tool in the language of the request.
func (t *turn) tell(s string) string {
	if !t.chinese {
		return s
	}
	if when, err := time.Parse("Monday, 2 January 2006, 15:04:05", cutZone(s)); err == nil {
		return when.Format("2006年1月2日 15:04") + " 星期" + string([]rune("日一二三四五六")[when.Weekday()])
	}
	for _, w := range sayings {
		if w.form().MatchString(s) {
			return strings.ReplaceAll(w.form().ReplaceAllString(s, w.zh), " bytes", " 字节")
		}
	}
	return s
}

// cutZone returns a time without its offset and zone.
func cutZone(s string) string {
	if i := strings.LastIndex(s, " ("); i > 0 {
		s = s[:i]
	}
	if i := strings.LastIndexAny(s, "+-"); i > 0 {
		s = strings.TrimSpace(s[:i])
	}
	return s
}

var lastNotes = lazy(`(?:^|\n\n)\[[^\n]*\]$`)

// withoutNotes returns the output of a command without the line that the tool adds for the
// model.
func withoutNotes(s string) string {
	return strings.TrimRight(lastNotes().ReplaceAllString(s, ""), "\n")
}
