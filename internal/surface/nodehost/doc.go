// Package nodehost makes this machine a node of a gateway on another one: it connects in the
// role of a node and carries out what the gateway sends.
//
// The machine has rules of its own about commands, those of the tool that runs them. What
// they refuse is not run, whatever the gateway says. That a person approved a command at the
// gateway counts only if the rules say that a person is to be asked.
//
// The host reconnects until its context ends. A command whose gateway is gone runs to its end
// or its time limit; nobody gets the answer. When the context ends, all commands are ended.
package nodehost
