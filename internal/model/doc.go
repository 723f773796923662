// Package model knows which models can be asked: those of the configuration,
// of services whose key is known, of model servers on this machine, and the
// built-in assistant. It chooses the one that answers by default, and makes
// the provider of each at its first use.
package model
