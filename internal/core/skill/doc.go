// Package skill finds, checks and installs skills: folders with a SKILL.md that teaches
// the model how to do something. A prompt contains the name, the description and the
// location of each; the model reads the rest when it needs it.
//
// SKILL.md begins with front matter; see [Skill] and [Metadata] for its keys. Skills are in
// the folders of [Folder] values, up to six levels deep. If several have the same name,
// that of the last folder is used; within a folder, that with the first path. A folder
// with a SKILL.md is not searched further. A link that leaves the folder is not followed.
// A [Finder] looks at all folders at each call and reads again what has changed.
//
// [Config.Check] says whether a skill is used: the configuration may switch it off, and the
// machine may lack what it requires. [Commands] gives skills the names of slash commands.
// [Install] replaces the folder of a skill as a whole, and [Scan] looks for what a person
// should look at before that. Nothing here runs anything of a skill.
package skill
