package external

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// resolve returns the section of an account for the program: "token" may be a reference to
// a secret, which is resolved.
func resolve(env channel.Env, account string, raw json.RawMessage) (json.RawMessage, error) {
	section := map[string]json.RawMessage{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &section); err != nil || section == nil {
			return nil, errors.New("want an object")
		}
	}
	if section["token"] != nil {
		var ref secret.Ref
		if err := json.Unmarshal(section["token"], &ref); err != nil {
			return nil, fmt.Errorf("token: %w", err)
		}
		v, err := env.Secret(account, ref, "")
		if err != nil {
			return nil, fmt.Errorf("token: %w", err)
		}
		if section["token"], err = json.Marshal(v.Reveal()); err != nil {
			return nil, fmt.Errorf("token: %w", err)
		}
	}
	return json.Marshal(section)
}
