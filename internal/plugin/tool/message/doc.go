// Package message implements the tool message, with which the model writes to a chat, and
// reacts to, edits, deletes, pins and reads what stands there.
//
// The tool only reads its arguments and files. Package engine/message carries the actions
// out. The description and the schema contain only what the configured channels support,
// because both are part of each request to the model.
package message
