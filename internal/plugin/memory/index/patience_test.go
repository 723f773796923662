package index

import "github.com/chela-ai/chela/internal/kit/waittest"

func init() { busyFor = waittest.Limit }
