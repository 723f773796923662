// Package model finds the models that can be used, chooses the default one, and makes providers
// at their first use. It calls no model itself.
//
// A [Set] belongs to one state of the configuration. Its catalog has the configured models, those
// of services with a known key, those of model servers on this machine (see [Set.Probe]), and the
// built-in assistant. The default model is the configured one; else the first of a configured
// provider; else that of the first service with a key; else one of a model server here; else the
// built-in assistant.
//
// [Set.Resolve] turns a name into a model and a provider, which is a chain of package failover:
// for each model of the chain (only the default one has fallbacks) a provider for each key. Keys
// are tried in this order: those of the agent, then the configured one, or, if there is none,
// those in environment variables and then the saved ones. Each key has an id that is not secret;
// its cooldown is stored under that, in a file, and taken over by the Set of the next
// configuration. [Set.With] returns the Set of an agent that differs in its model, fields or
// keys; it shares the catalog and the cooldowns.
//
// Requests get the configured fields here (see params), over whatever the caller asked for, but
// within the ceiling of a budget.
package model
