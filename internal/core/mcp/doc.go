// Package mcp describes servers of the Model Context Protocol: programs that offer
// tools over their standard input and output, or over HTTP. The configuration lists
// them at mcp.servers, and plug-ins bring their own. The client is in package
// plugin/tool/mcp.
package mcp
