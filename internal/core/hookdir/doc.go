// Package hookdir finds the hooks that the person installed: folders with a HOOK.md
// and a program.
//
// HOOK.md begins with front matter: name, description, homepage, and
// metadata.openclaw with emoji, events, os, requires, always and hookKey. The
// program is the file handler in the folder, or handler with one of the endings
// .sh, .py, .js, .mjs, .cjs and .ts; see [Handler].
//
// The sources are, from the weakest: hooks that are part of Chela, the folders of
// hooks.internal.load.extraDirs, the folder hooks in the state directory, plug-ins,
// and the folder hooks in a workspace. A hook replaces one with the same name of a weaker
// source. Hooks of plug-ins and of a workspace only add names. Those of a workspace,
// where the agent can write, are off until they are enabled, and are bound to the
// content that the folder had then; those of a plug-in are bound with it.
package hookdir
