// Package settings is the configuration as the parts need it: [Read] decodes
// the sections into [Settings], whose methods return what each part is made of.
// The keys are OpenClaw's. A Settings is not changed after it was read: another
// state of the configuration is another Settings.
package settings
