package offline

import (
	"path/filepath"
	"strings"
)

// where names the folder of the workspace.
func where(t *turn, _ match) *step {
	if t.dir == "" {
		return &step{answer: t.localize(noFolderText), unable: true}
	}
	return &step{answer: t.localize(folderText, "`"+t.dir+"`")}
}

// looked returns where a file was looked for that does not exist, or "".
func (t *turn) looked(r result) string {
	path := r.arg("path")
	if !r.isMissing() || path == "" || strings.HasPrefix(path, "~") ||
		strings.HasPrefix(path, "skills:") || filepath.IsAbs(path) {
		return ""
	}
	if t.dir == "" {
		return t.localize(lookedText)
	}
	return t.localize(lookedInText, "`"+t.dir+"`")
}

var (
	folderText   = localized{"The workspace is %s.", "工作区是 %s。"}
	noFolderText = localized{"I do not know in which folder I work.", "我不知道自己在哪个文件夹里工作。"}
	lookedText   = localized{" in the workspace.", "（在工作区里找过）"}
	lookedInText = localized{" in the workspace, %s.", "（在工作区 %s 里找过）"}
)
