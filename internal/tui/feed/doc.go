// Package feed turns the events of a gateway into what happens in one
// conversation: text that grows, tools that begin and end, answers that are
// complete, questions to the person. A surface shows the [Step] values in
// order and needs to know nothing of the protocol.
package feed
