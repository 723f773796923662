// Package settings decodes the sections of the configuration that the engine
// reads itself: [Read] returns them as [Settings], whose methods compute the
// options of the engine's parts. The keys are OpenClaw's. Settings are not
// changed after Read; a changed configuration is read again.
package settings
