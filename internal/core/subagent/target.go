package subagent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
)

// The targets that stand for several children or the newest one.
const (
	TargetAll  = "all"
	TargetLast = "last"
)

// Find returns the children that a target names: an index in the list, counted from 1
// at the newest, an id, a session key, a label, the beginning of a task name or of an
// id, "last" for the newest open child, or "all" for all open ones. list is ordered
// from the oldest to the newest. An error lists what could have been named.
func Find(list []Child, target string) ([]Child, error) {
	target = strings.TrimSpace(target)
	var open []Child
	for _, c := range list {
		if c.Open() {
			open = append(open, c)
		}
	}
	switch strings.ToLower(target) {
	case "":
		return nil, chela.Errorf(chela.CodeInvalid, "name a child: %s", known(list))
	case TargetAll:
		return open, nil
	case TargetLast:
		if len(open) > 0 {
			return open[len(open)-1:], nil
		}
		if len(list) > 0 {
			return list[len(list)-1:], nil
		}
		return nil, chela.Errorf(chela.CodeNotFound, "there are no children")
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(target, "#")); err == nil {
		switch i := len(list) - n; {
		case n >= 1 && i >= 0:
			return list[i : i+1], nil
		case len(target) < minPrefix: // otherwise it may be the beginning of an id
			return nil, chela.Errorf(chela.CodeNotFound, "there is no child %d: %s", n, known(list))
		}
	}
	for _, match := range []func(Child) bool{
		func(c Child) bool { return string(c.ID) == target || string(c.Session) == target },
		func(c Child) bool { return strings.EqualFold(c.Label, target) || c.Name != "" && c.Name == target },
		func(c Child) bool {
			return c.Name != "" && strings.HasPrefix(c.Name, target) ||
				len(target) >= minPrefix && strings.HasPrefix(string(c.ID), target)
		},
	} {
		found := slices.DeleteFunc(slices.Clone(list), func(c Child) bool { return !match(c) })
		if active := slices.DeleteFunc(slices.Clone(found), func(c Child) bool { return !c.Open() }); len(active) == 1 {
			return active, nil // an ended one with the same label is not meant
		}
		switch len(found) {
		case 0:
		case 1:
			return found, nil
		default:
			return nil, chela.Errorf(chela.CodeInvalid, "%q names several children: %s", target, known(found))
		}
	}
	return nil, chela.Errorf(chela.CodeNotFound, "there is no child %q: %s", target, known(list))
}

// Named returns the open child that the first word of a sentence names: by an index as
// in [Find], an id, a session key, or a whole label or task name. The words "last" and
// "all" and the beginning of a name can be part of the sentence, and name nothing.
func Named(list []Child, word string) (Child, bool) {
	found, err := Find(list, word)
	if err != nil || len(found) != 1 || !found[0].Open() || strings.EqualFold(word, TargetAll) ||
		strings.EqualFold(word, TargetLast) {
		return Child{}, false
	}
	c := found[0]
	return c, c.Name == word || c.Name == "" || !strings.HasPrefix(c.Name, word) || strings.EqualFold(c.Label, word)
}

// minPrefix is the minimum length of the beginning of an id.
const minPrefix = 4

// maxKnown is the number of children that an error lists.
const maxKnown = 10

// known lists children for an error.
func known(list []Child) string {
	if len(list) == 0 {
		return "there are none"
	}
	var parts []string
	for i, c := range slices.Backward(list) {
		if len(parts) == maxKnown {
			parts = append(parts, fmt.Sprintf("and %d more", i+1))
			break
		}
		parts = append(parts, fmt.Sprintf("%d (%s)", len(list)-i, c.Label))
	}
	return strings.Join(parts, ", ")
}
