package queue

// Resolve finishes a deferred item with a result and puts a waiting item with the given
// text in its place. With the empty text it only cancels the deferred item. It reports
// whether a waiting item was put.
func Resolve(t Table, id, text string, r Result) (bool, error) {
	it, err := t.Get(id)
	if err != nil || it.State != Deferred {
		return false, err
	}
	it.Result = r
	if text == "" {
		return false, t.Set(Cancelled, it)
	}
	if err := t.Set(Done, it); err != nil {
		return false, err
	}
	it.ID, it.Key = it.ID+":told", it.Key+":told"
	it.State, it.Owner, it.Result, it.Created, it.Inbound.Text = Waiting, "", Result{}, r.Ended, text
	_, err = t.Put(it)
	return true, err
}

// Release moves the deferred items of dead owners to Waiting and returns them.
// An item without an owner is treated as an item of a dead owner.
func Release(t Table, alive func(owner string) (bool, error)) ([]Item, error) {
	deferred, err := t.Deferred()
	if err != nil {
		return nil, err
	}
	var released []Item
	for _, it := range deferred {
		if it.Owner != "" {
			live, err := alive(it.Owner)
			if err != nil {
				return nil, err
			}
			if live {
				continue
			}
		}
		released = append(released, it)
	}
	if len(released) == 0 {
		return nil, nil
	}
	return released, t.Set(Waiting, released...)
}
