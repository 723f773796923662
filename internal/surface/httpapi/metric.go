package httpapi

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Types of metrics.
const (
	Counter = "counter"
	Gauge   = "gauge"
)

// Metric is a metric and its values.
type Metric struct {
	Name   string
	Help   string
	Kind   string             // Counter or Gauge
	Label  string             // label name; "": one value without a label
	Values map[string]float64 // by label value
}

// One returns a metric without a label.
func One(name, help, kind string, v float64) Metric {
	return Metric{Name: name, Help: help, Kind: kind, Values: map[string]float64{"": v}}
}

// expose encodes metrics in the Prometheus text format.
func expose(all []Metric) []byte {
	var b bytes.Buffer
	escape := strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	for _, m := range all {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", m.Name, m.Help, m.Name, m.Kind)
		for _, key := range slices.Sorted(maps.Keys(m.Values)) {
			b.WriteString(m.Name)
			if m.Label != "" {
				fmt.Fprintf(&b, `{%s="%s"}`, m.Label, escape.Replace(key))
			}
			b.WriteByte(' ')
			b.WriteString(strconv.FormatFloat(m.Values[key], 'g', -1, 64))
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}
