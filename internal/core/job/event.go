package job

// Event is the data of an event on the stream chela.StreamCron.
type Event struct {
	Action string // added, updated, removed, started, finished, imported
	Job    Job    // of a removed job: as it was
	Run    Run    // of started and finished
}

// EventPayload marks the event as the data of an event.
func (Event) EventPayload() {}
