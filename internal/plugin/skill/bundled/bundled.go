// Package bundled contains the skills that are part of Chela.
//
// Each is a folder with a SKILL.md only: models read it from the binary, so that it has
// no programs of its own. A skill says which programs it needs, and is not used without
// them.
package bundled

import "embed"

// Skills are the folders of the skills.
//
//go:embed */SKILL.md
var Skills embed.FS
