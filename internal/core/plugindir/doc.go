// Package plugindir finds and installs plug-ins: folders with a manifest, which bring
// skills, agent types, hooks, servers of the Model Context Protocol, a program with tools
// of its own, and a chat channel. Nothing of a plug-in runs while it is read.
//
// The manifest is the first of these files that exists:
//
//	chela.plugin.json            Chela's and OpenClaw's own format, in JSON5
//	openclaw.plugin.json
//	.codex-plugin/plugin.json    a plug-in of Codex: skills/, hooks/, .mcp.json
//	.claude-plugin/plugin.json   a plug-in of Claude: skills/, agents/, commands/, hooks/, .mcp.json
//	plugin.json                  the Agent Plugins standard: skills/, mcp.json
//
// Chela's format has the keys id, name, version, description, homepage, configSchema,
// skills, hooks, agents, mcpServers, contracts.tools, toolMetadata.NAME.optional, and three
// that OpenClaw does not have: process is the program that offers the tools, as a server
// on its standard input and output, channel is a chat channel with the program that
// implements it, and permissions is what the programs may use. Code
// that OpenClaw loads into its own process is not run; [Plugin.Unsupported] says what is
// missing.
//
// The sources are the folders of plugins.load.paths, the folder plugins in the state
// directory, and the folders .openclaw/extensions and .chela/plugins in workspaces. A
// plug-in of a workspace never replaces another, because the agent can write there.
// Plug-ins are off until they are enabled, except those of plugins.load.paths, and their
// content is bound to the hash that it had when they were enabled; see [Plugin.Changed].
package plugindir
