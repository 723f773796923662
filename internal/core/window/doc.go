// Package window has the rules about what fits into the context window of a model.
//
// [Resolve] determines the size of a window and where it comes from. [Prune] decides
// which old tool results and images are no longer sent in full: the decision is an entry
// of the transcript, so that later requests contain the same bytes. [NewReport] says
// what a request consists of. The rules call no model and read no store.
package window
