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
	{lazy(`^oldText occurs (\d+) times in (.+?)(?:;.*)?$|^the text occurs (\d+) times in (.+)$`),
		"要替换的文字在 `$2$4` 里出现了 $1$3 次"},
	{lazy(`^(?:oldText and newText|the old and the new text) are the same$`), "新旧文字相同"},
	{lazy(`^exit code (\d+)$`), "退出码 $1"},
	{lazy(`^timed out after (.+)$`), "超过 $1 仍未结束"},
	{lazy(`^ended by (.+)$`), "被 $1 终止"},
	{lazy(`^not run: it needs an approval, and nobody could be asked$`), "没有执行：无人可以批准"},
	{lazy(`^not run: denied$`), "没有执行：已被拒绝"},
	{lazy(`^not run: denied by (.+)$`), "没有执行：$1 拒绝了"},
	{lazy(`^not run: the approval request expired without an answer$`), "没有执行：没有人回答批准请求"},
	{lazy(`^Chela protects (.+?): .*$`), "Chela 保护 $1：里面可能有密码或密钥，或者有其他程序会运行的内容"},
	{lazy(`^the sandbox kept what is in there.*$`), "沙盒保留了里面的内容，git 也不能改"},
	{lazy(`^changed, and runs later: (.+)$`), "已修改，以后会被运行：$1"},
	{lazy(`^renamed to NAME\.blocked, because other programs run what has such a name: (.+)$`),
		"已改名为 NAME.blocked，因为其他程序会运行这样命名的文件：$1"},
	{lazy(`^opened to their owner again, because what is in them has to be checked: (.+)$`), "已重新对所有者开放，因为要检查里面的内容：$1"},
	{lazy(`^the settings that it changed are not kept: .*$`), "修改的设置不会保留：沙盒有自己的主目录，命令结束后就没有了"},
	{lazy(`^files in /tmp are .*$`), "/tmp 里的文件已经不在了：沙盒有自己的 /tmp"},
	{lazy(`^(\d+) background process(?:es)? w(?:ere|as) still running and w(?:ere|as) ended$`), "还有 $1 个后台进程在运行，已经结束"},
	{lazy(`^still running in the background as sessionId (\w+), pid (\d+)$`), "仍在后台运行（$1，进程号 $2）"},
	{lazy(`^the sandbox refused (.+)$`), "沙盒拒绝了 $1"},
	{lazy(`^it left out private files, such as \.env and keys$`), "没有读取私密文件，例如 .env 和密钥"},
	{lazy(`^/undo cannot bring back what was in (.+?): .*$`), "/undo 不能恢复 $1 的内容"},
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

var (
	lastNotes = lazy(`(?:^|\n\n)\[([^\n]*)\]$`)
	// modelNotes are notes that say what a reply says anyway, or what only a model can do.
	modelNotes = lazy(`^(?:exit code \d+|timed out after .*|ended by \S+|succeeded, no output|no output|host gateway asks .*|it ran in the sandbox|` +
		`for the whole output use process log .*|use process to .*|name one to ask the person for it|tell the person)$`)
)

// withoutNotes returns the output of a command without the line of notes that the tool adds.
func withoutNotes(s string) string {
	return strings.TrimRight(lastNotes().ReplaceAllString(s, ""), "\n")
}

// notes returns what the tool notes about a command, without what only a model can use: a
// paragraph, or "".
func (t *turn) notes(s string) string {
	g := lastNotes().FindStringSubmatch(s)
	if g == nil {
		return ""
	}
	var lines []string
	for note := range strings.SplitSeq(g[1], "; ") {
		if !modelNotes().MatchString(note) {
			lines = append(lines, t.localize(hintText, t.tell(note)))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "\n\n" + strings.Join(lines, "\n")
}
