package channel

import (
	"encoding/json"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Account is a configured account.
type Account struct {
	Channel string
	Aliases []string // other names of the channel
	ID      chela.AccountID
	Section json.RawMessage // of the configuration
	Usual   bool            // the account of the channel that is used when none is named
	Limits  Limits

	// Can has the abilities of the account. It is used through its running instance only;
	// nil: not known.
	Can Channel
	Err error // why it is not running, or does not reach its platform; nil: it does, or tries to
	Up  bool  // its connection was reported to work, and not to be lost since
}

// String returns "channel/account".
func (a Account) String() string {
	if a.ID == "" {
		return a.Channel
	}
	return a.Channel + "/" + string(a.ID)
}
