package queue

import "time"

// Tell ends a promise: the session is told text in place of what it was owed,
// now; the empty text tells it nothing. It reports whether something waits.
func Tell(t Table, id, text string, now time.Time) (bool, error) {
	it, err := t.Get(id)
	if err != nil || it.State != Owed {
		return false, err
	}
	if text == "" {
		return false, t.Set(Cancelled, it)
	}
	if err := t.Set(Done, it); err != nil {
		return false, err
	}
	it.ID, it.Key = it.ID+":told", it.Key+":told"
	it.State, it.Created, it.Inbound.Text = Waiting, now, text
	_, err = t.Put(it)
	return true, err
}

// Release lets everything be told that is owed: whoever was to end the
// promises is no more. It returns what waits now.
func Release(t Table) ([]Item, error) {
	owed, err := t.Owed()
	if err != nil || len(owed) == 0 {
		return nil, err
	}
	return owed, t.Set(Waiting, owed...)
}
