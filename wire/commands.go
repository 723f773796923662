package wire

// MethodCommandsList lists the slash commands.
const MethodCommandsList = "commands.list"

// CommandsGet holds the parameters of commands.list.
type CommandsGet struct {
	SessionKey  string `json:"sessionKey,omitempty"`
	AgentID     string `json:"agentId,omitempty"`
	Provider    string `json:"provider,omitempty"`
	Scope       string `json:"scope,omitempty"` // text, native, both
	IncludeArgs bool   `json:"includeArgs,omitempty"`
}

// CommandsList is the result of commands.list.
type CommandsList struct {
	Commands []Command `json:"commands"`
}

// Command describes a slash command.
type Command struct {
	Name        string       `json:"name"`
	NativeName  string       `json:"nativeName,omitempty"`
	Aliases     []string     `json:"textAliases,omitempty"` // with the slash, the name first: /name
	Description string       `json:"description"`
	Category    string       `json:"category,omitempty"` // session, options, status, management, media, tools
	Source      string       `json:"source"`             // native, skill
	Scope       string       `json:"scope"`              // both
	AcceptsArgs bool         `json:"acceptsArgs"`
	Args        []CommandArg `json:"args,omitempty"`
}

// CommandArg describes an argument of a command.
type CommandArg struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Type        string   `json:"type"` // string
	Required    bool     `json:"required,omitempty"`
	Choices     []Choice `json:"choices,omitempty"`
}

// Choice is one of the values of an argument.
type Choice struct {
	Value string `json:"value"`
	Label string `json:"label"`
}
