package runner

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// maxMarkers is the number of attachments that were not read of which a message tells
// the model. The others are counted.
const maxMarkers = 5

// readAttachments returns the items with their attachments as they were read for the
// run's model. It is called before the commit that takes the items, so that the entries
// contain what was read: neither a resumed run nor a later request reads it again. After
// a crash in between, the items still wait, and only the reading is repeated.
func readAttachments(ctx context.Context, p *Profile, row run.Run, items []queue.Item) ([]queue.Item, error) {
	if p.Read == nil {
		return items, nil
	}
	out := items
	for i, it := range items {
		if len(it.Inbound.Media) == 0 || !p.Reads(row, it.Inbound.Media) {
			continue
		}
		if &out[0] == &items[0] {
			out = append([]queue.Item(nil), items...)
		}
		list, err := p.Read(ctx, row, it.Inbound.Media)
		if err != nil {
			return nil, err
		}
		out[i].Inbound.Media = list
	}
	return out, nil
}

// attached is what the model is sent of the attachments of a message.
type attached struct {
	pictures []llm.Part // pictures, preceded by their labels if there are several
	blocks   []string   // what was read in others
	files    []string   // the texts of documents
	markers  []string   // of attachments that were not read
}

// attachedTo returns what the model is sent of attachments.
func attachedTo(list []chela.Media) (a attached) {
	count, seen := map[media.Kind]int{}, map[media.Kind]int{}
	for _, m := range list {
		count[media.KindOf(m)]++
	}
	left := 0
	for _, m := range list {
		k := media.KindOf(m)
		seen[k]++
		label := heading(k, seen[k], count[k])
		if k == media.Picture && m.Lost == "" {
			if m.Text == "" && m.Problem == "" && count[k] > 1 {
				a.pictures = append(a.pictures, llm.Text(label+"\n"))
			}
			a.pictures = append(a.pictures, media.Part(m))
		}
		switch {
		case m.Text != "" && k == media.Document:
			a.files = append(a.files, fmt.Sprintf("%s %s]\n%s", session.DocumentHeading, oneLine(m.Name, 100), m.Text))
		case m.Text != "":
			a.blocks = append(a.blocks, label+"\n"+title(k)+"\n"+m.Text)
		case k == media.Picture && m.Lost == "" && m.Problem == "":
		case len(a.markers) >= maxMarkers:
			left++
		default:
			why := cmp.Or(oneLine(m.Lost, 200), oneLine(m.Problem, 300), "not readable here")
			name := cmp.Or(oneLine(m.Name, 100), strings.ToLower(strings.Trim(label, "[]")))
			if kind := oneLine(m.Type, 60); kind != "" {
				name += fmt.Sprintf(", %s, %d bytes", kind, m.Size())
			}
			a.markers = append(a.markers, fmt.Sprintf("[attachment %s: %s]", name, why))
		}
	}
	if left > 0 {
		a.markers = append(a.markers, fmt.Sprintf("[%s not read]", humanize.Many(left, "further attachment")))
	}
	return a
}

// heading returns the label of an attachment: [Image], or [Image 2/10] if the message
// has several of its kind.
func heading(k media.Kind, n, of int) string {
	name := map[media.Kind]string{
		media.Picture:  "Image",
		media.Audio:    "Audio",
		media.Video:    "Video",
		media.Document: "Document",
	}[k]
	name = cmp.Or(name, "File")
	if of > 1 {
		return fmt.Sprintf("[%s %d/%d]", name, n, of)
	}
	return "[" + name + "]"
}

// title returns the line before what was read in an attachment.
func title(k media.Kind) string {
	if k == media.Audio {
		return "Transcript (machine-made, may contain errors):"
	}
	return "Description (machine-made):"
}

// text returns the text of a message with attachments.
func (a attached) text(said string) string {
	parts := []string{said}
	switch {
	case len(a.blocks) == 1 && said != "":
		first, rest, _ := strings.Cut(a.blocks[0], "\n")
		parts = []string{first + "\nUser text:\n" + said + "\n" + rest}
	case len(a.blocks) > 0:
		if said != "" {
			parts[0] = "User text:\n" + said
		}
		parts = append(parts, strings.Join(a.blocks, "\n\n"))
	}
	parts = append(parts, a.files...)
	if len(a.markers) > 0 {
		if len(parts) == 1 { // directly below the text
			return parts[0] + "\n" + strings.Join(a.markers, "\n")
		}
		parts = append(parts, strings.Join(a.markers, "\n"))
	}
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, "\n\n")
}

// mediaSummary says for /status how the attachments of a run's items were read; "": there
// are none.
func mediaSummary(items []queue.Item) string {
	var out []string
	for _, it := range items {
		for _, m := range it.Inbound.Media {
			k := media.KindOf(m)
			switch how := cmp.Or(oneLine(m.Lost, 80), oneLine(m.Problem, 80)); {
			case m.Text != "":
				out = append(out, fmt.Sprintf("%s read by %s", cmp.Or(string(k), "file"), cmp.Or(m.By, "Chela")))
			case how != "":
				out = append(out, fmt.Sprintf("%s: %s", cmp.Or(string(k), "file"), how))
			}
		}
	}
	if n := len(out) - maxMarkers; n > 0 {
		out = append(out[:maxMarkers], fmt.Sprintf("%d more", n))
	}
	return strings.Join(out, "; ")
}
