// Package model finds the models that can be used: those of the configuration, of
// services with a known key, of model servers on this machine, and the built-in
// assistant. It chooses the default model and makes providers at their first use.
package model
