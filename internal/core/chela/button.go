package chela

// Button is a button below a message. Pressing it is a message of the person who presses
// it, with the text Data if that is a command, and otherwise "callback_data: " and Data.
type Button struct {
	Label string      `json:"label"`
	Data  string      `json:"data,omitempty"` // at most 64 bytes
	URL   string      `json:"url,omitempty"`  // opened instead; Data is then empty
	Style ButtonStyle `json:"style,omitempty"`
}

// ButtonStyle is how a button looks. A platform without the style shows a usual button.
type ButtonStyle string

// The styles of buttons. The zero ButtonStyle is a usual button.
const (
	Primary ButtonStyle = "primary"
	Success ButtonStyle = "success"
	Danger  ButtonStyle = "danger"
)
