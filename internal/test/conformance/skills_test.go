//go:build conformance

package conformance

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/chela-ai/chela/wire"
)

// TestControlUISkills uses the pages about skills.
func TestControlUISkills(t *testing.T) {
	t.Parallel()
	s := newGateway(t, merge(withUI(t), section{"skills": section{"registry": section{"url": registry(t)}}}))
	l := s.operator(t)
	for _, name := range []string{"brew", "toast"} {
		l.Must(wire.MethodProposalsCreate, wire.ProposalCreate{Name: name, Description: "How to " + name,
			Content: "# Steps\n\nHeat it: " + name, Goal: "breakfast"}, nil)
	}
	b := newBrowser(t)
	b.Open(s.HTTP() + "/#token=" + url.QueryEscape(token))
	b.Await("no message field", `!!document.querySelector('`+composer+`')`)
	step := func(name string, f func(t *testing.T)) {
		if !t.Run(name, func(t *testing.T) { b.t = t; f(t) }) {
			t.FailNow()
		}
		b.t = t
	}
	skill := func(name string) (string, error) {
		text, err := os.ReadFile(filepath.Join(s.Work, "skills", name, "SKILL.md"))
		return string(text), err
	}
	step("a skill of the registry is found and installed", func(t *testing.T) {
		b.Open(s.HTTP() + "/skills")
		const field = `document.querySelector("input[name=skills-search]")`
		b.Await("no field to search", "!!"+field)
		b.write(field, "tea")
		b.Shows("makes tea")
		b.press("Install")
		b.Shows("Installed tea 1.0")
		if _, err := skill("tea"); err != nil {
			t.Error(err)
		}
	})
	step("skills are shown in groups, and one can be switched off", func(t *testing.T) {
		b.Open(s.HTTP() + "/settings/skills")
		const groups = `[...document.querySelectorAll(".skills-group")].map(e => e.innerText)`
		b.Await("the skills of the workspace and the bundled ones are no groups", groups+`.length == 2 && `+groups+
			`[0].includes("Make tea.")`)
		b.do("open the skill",
			chromedp.Evaluate[chromedp.Void](
				`[...document.querySelectorAll(".plugins-item__detail-button")].find(e => e.innerText.startsWith("tea")).click()`))
		const off = `[...document.querySelectorAll("openclaw-modal-dialog wa-switch, openclaw-modal-dialog input[type=checkbox]")][0]`
		b.Await("no switch", "!!"+off)
		b.do("switch off", chromedp.Evaluate[chromedp.Void](off+".click()"))
		b.Await("it is not counted as off",
			`[...document.querySelectorAll("*")].some(e => /^Disabled\s+1$/.test(e.innerText || ""))`)
		if list := s.Chela("skills", "info", "tea"); !strings.Contains(list, "no:") {
			t.Errorf("the skill:\n%s", list)
		}
	})
	step("a proposal is shown with its text, and applied", func(t *testing.T) {
		b.Open(s.HTTP() + "/skills/workshop")
		b.Await("no tab for proposals", `!!document.getElementById("skill-workshop-mode-tab-suggestions")`)
		b.Shows("1 installed")
		b.do("open the proposals", chromedp.Click("#skill-workshop-mode-tab-suggestions"))
		b.Shows("Heat it: toast")
		b.press("Apply")
		b.Await("it is not applied", `!document.body.innerText.includes("Heat it: toast")`)
		if text, err := skill("toast"); err != nil || !strings.Contains(text, "Heat it: toast") {
			t.Errorf("the skill: %q, %v", text, err)
		}
	})
	step("the other one is rejected", func(t *testing.T) {
		b.Shows("Heat it: brew")
		b.press("Reject")
		b.Await("it is not rejected", `!document.body.innerText.includes("Heat it: brew")`)
		if list := s.Chela("skills", "proposals", "list"); !strings.Contains(list, "rejected") ||
			!strings.Contains(list, "applied") {
			t.Errorf("the proposals:\n%s", list)
		}
		if _, err := skill("brew"); err == nil {
			t.Error("the rejected one is a skill")
		}
	})
	t.Run("advertised methods succeed", func(t *testing.T) { b.succeeded(t) })
}
