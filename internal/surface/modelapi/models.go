package modelapi

import (
	"net/http"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/access"
)

// target returns the agent that a model name stands for.
func (a *API) target(name string) (chela.AgentID, bool) {
	if name == "" {
		return a.o.Default(), true
	}
	id, ok := strings.CutPrefix(name, "agent:")
	for _, family := range families {
		if name == family || name == family+"/default" {
			return a.o.Default(), true
		}
		if rest, is := strings.CutPrefix(name, family+"/"); is {
			id, ok = rest, true
		}
	}
	return chela.AgentID(id), ok && a.has(chela.AgentID(id))
}

// families begin the names of models: our own, and that of OpenClaw.
var families = [...]string{"chela", "openclaw"}

func (a *API) has(id chela.AgentID) bool {
	for _, agent := range a.o.Agents() {
		if agent.ID == id {
			return true
		}
	}
	return false
}

// unknownModel is the fault of a request for an unknown model.
func (a *API) unknownModel(name string, status int) *fault {
	var own []string
	for _, m := range a.list() {
		if strings.HasPrefix(m, families[0]) {
			own = append(own, m)
		}
	}
	return &fault{
		status: status, param: "model", code: "model_not_found",
		text: "Invalid `model` " + clip(name) + ". Use " + strings.Join(own, ", ") +
			", or the same with `openclaw` instead of `chela`, or `agent:<id>`.",
	}
}

// list returns the names of the models.
func (a *API) list() []string {
	var out []string
	for _, family := range families {
		out = append(out, family, family+"/default")
		for _, agent := range a.o.Agents() {
			out = append(out, family+"/"+string(agent.ID))
		}
	}
	return out
}

// model describes a model in both forms.
func (a *API) model(name string) object {
	return object{
		"id": name, "object": "model", "created": a.o.Started.Unix(), "owned_by": "chela",
		"type": "model", "display_name": name, "created_at": a.o.Started.UTC().Format("2006-01-02T15:04:05Z"),
	}
}

// models answers GET /v1/models and /v1/models/{id}.
func (a *API) models(w http.ResponseWriter, r *http.Request) {
	rest, single := strings.CutPrefix(r.URL.Path, "/v1/models/")
	names := a.list()
	if !single {
		list := []object{}
		for _, name := range names {
			list = append(list, a.model(name))
		}
		access.WriteJSON(w, http.StatusOK, object{
			"object": "list", "data": list, "has_more": false, "first_id": names[0], "last_id": names[len(names)-1],
		})
		return
	}
	if _, ok := a.target(rest); !ok || rest == "" {
		write(w, formOf(r), a.unknownModel(rest, http.StatusNotFound))
		return
	}
	access.WriteJSON(w, http.StatusOK, a.model(rest))
}
