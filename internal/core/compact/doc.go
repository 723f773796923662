// Package compact has the rules about the size of a conversation in the context of a
// model. It neither calls models nor reads the store.
//
// [NewPlan] decides which beginning of a conversation a summary replaces. [Chunks]
// divides it for a model, and [Render] writes it as text. [Facts] extracts what the
// summary must contain, [Check] rejects unusable answers, and [Take] examines a
// summary and puts missing facts back. [Config] has the settings.
package compact
