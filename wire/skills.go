package wire

// The methods about skills. skills.remove is not in OpenClaw.
const (
	MethodSkillsStatus  = "skills.status"
	MethodSkillsLibrary = "skills.library.list"
	MethodSkillsSearch  = "skills.search"
	MethodSkillsDetail  = "skills.detail"
	MethodSkillsInstall = "skills.install"
	MethodSkillsUpdate  = "skills.update"
	MethodSkillsRemove  = "skills.remove"
)

// SkillsGet holds the parameters of skills.status.
type SkillsGet struct {
	AgentID    string `json:"agentId,omitempty"`
	SessionKey string `json:"sessionKey,omitempty"`
}

// SkillsStatus is the result of skills.status.
type SkillsStatus struct {
	Workspace string         `json:"workspaceDir"`
	Managed   string         `json:"managedSkillsDir"`
	AgentID   string         `json:"agentId"`
	Skills    []Skill        `json:"skills"`
	Problems  []SkillProblem `json:"problems"` // with files that were skipped
}

// SkillProblem is what is wrong with a file.
type SkillProblem struct {
	File string `json:"file"`
	Text string `json:"text"`
}

// Skill is a skill of an agent.
type Skill struct {
	Name           string           `json:"name"`
	Description    string           `json:"description"`
	Source         string           `json:"source"` // as in OpenClaw; see the constants
	Bundled        bool             `json:"bundled"`
	File           string           `json:"filePath"`
	Dir            string           `json:"baseDir"`
	Key            string           `json:"skillKey"`
	Emoji          string           `json:"emoji,omitempty"`
	Homepage       string           `json:"homepage,omitempty"`
	License        string           `json:"license,omitempty"`
	Compatibility  string           `json:"compatibility,omitempty"`
	Variable       string           `json:"primaryEnv,omitempty"`
	Always         bool             `json:"always"`
	Disabled       bool             `json:"disabled"`
	NotAllowed     bool             `json:"blockedByAllowlist"`
	NotOfAgent     bool             `json:"blockedByAgentFilter"`
	Eligible       bool             `json:"eligible"`
	WrongOS        bool             `json:"platformIncompatible"`
	ModelVisible   bool             `json:"modelVisible"`
	UserInvocable  bool             `json:"userInvocable"`
	CommandVisible bool             `json:"commandVisible"`
	Command        string           `json:"command,omitempty"` // without the slash
	Tool           string           `json:"commandTool,omitempty"`
	Requirements   SkillNeeds       `json:"requirements"`
	Missing        SkillNeeds       `json:"missing"`
	Reasons        []string         `json:"reasons"` // why it is not used
	ConfigChecks   []SkillCheck     `json:"configChecks"`
	Install        []SkillInstaller `json:"install"`
	Origin         *SkillOrigin     `json:"origin,omitempty"` // of an installed one
	Edited         bool             `json:"edited,omitempty"` // it was changed since it was installed
}

// The sources of skills.
const (
	SkillExtra     = "openclaw-extra"
	SkillBundled   = "openclaw-bundled"
	SkillManaged   = "openclaw-managed"
	SkillPersonal  = "agents-skills-personal"
	SkillProject   = "agents-skills-project"
	SkillWorkspace = "openclaw-workspace"
)

// SkillNeeds is what a skill requires.
type SkillNeeds struct {
	Bins    []string `json:"bins"`
	AnyBins []string `json:"anyBins"`
	Env     []string `json:"env"`
	Config  []string `json:"config"`
	OS      []string `json:"os"`
}

// SkillCheck is whether the configuration has what a skill requires.
type SkillCheck struct {
	Path      string `json:"path"`
	Satisfied bool   `json:"satisfied"`
}

// SkillInstaller says how a person can install a program that a skill requires.
type SkillInstaller struct {
	ID    string   `json:"id,omitempty"`
	Kind  string   `json:"kind"`
	Label string   `json:"label"`
	Bins  []string `json:"bins"`
}

// SkillOrigin says where an installed skill is from.
type SkillOrigin struct {
	Source    string `json:"source"` // path, url, git, registry
	From      string `json:"from"`
	Path      string `json:"path,omitempty"` // of the skill in it
	Version   string `json:"version,omitempty"`
	Commit    string `json:"commit,omitempty"`
	Hash      string `json:"sha256"`
	Installed int64  `json:"installedAtMs,omitempty"`
}

// SkillsSearch holds the parameters of skills.search.
type SkillsSearch struct {
	Query string `json:"query,omitempty"`
	Limit int    `json:"limit,omitempty" min:"1"`
}

// SkillsFound is the result of skills.search.
type SkillsFound struct {
	Results []SkillListing `json:"results"`
}

// SkillListing is a skill of the registry.
type SkillListing struct {
	Score       float64 `json:"score"` // of the first one 1, and then falling
	Slug        string  `json:"slug"`
	Ref         string  `json:"installRef"` // the slug for skills.install
	Name        string  `json:"displayName"`
	Description string  `json:"summary"`
	Version     string  `json:"version,omitempty"`
}

// SkillGet holds the parameters of skills.detail.
type SkillGet struct {
	Slug string `json:"slug"`
}

// SkillDetail is the result of skills.detail.
type SkillDetail struct {
	Skill  RegistrySkill    `json:"skill"`
	Latest *RegistryVersion `json:"latestVersion"` // nil: it has no version
}

// RegistrySkill describes a skill of the registry. A time is 0 if the registry does not
// say it.
type RegistrySkill struct {
	Slug        string `json:"slug"`
	Name        string `json:"displayName"`
	Description string `json:"summary"`
	Created     int64  `json:"createdAt"` // of the oldest version, in ms
	Updated     int64  `json:"updatedAt"` // of the newest version, in ms
}

// RegistryVersion is a version of a skill in the registry.
type RegistryVersion struct {
	Version   string `json:"version"`
	Created   int64  `json:"createdAt"` // in ms; 0: unknown
	Changelog string `json:"changelog,omitempty"`
}

// SkillsInstall holds the parameters of skills.install.
type SkillsInstall struct {
	AgentID string `json:"agentId,omitempty"` // in whose workspace it is installed; "": for all agents
	From    string `json:"from,omitempty"`    // an absolute path, an address, or a name of the registry
	// clawhub or registry, with slug; path, url or git, with from; "": as from says
	Source  string `json:"source,omitempty"`
	Slug    string `json:"slug,omitempty"`
	Version string `json:"version,omitempty"`
	Path    string `json:"path,omitempty"` // of the skill in the folder, archive or repository
	Replace bool   `json:"replace,omitempty"`
	Force   bool   `json:"force,omitempty"` // in spite of critical findings and of changes by hand
	Preview bool   `json:"preview,omitempty"`
	Hash    string `json:"sha256,omitempty"` // of the files, as a preview showed it
	// Name and InstallID ask for a program that a skill requires, which Chela does not
	// install.
	Name      string `json:"name,omitempty"`
	InstallID string `json:"installId,omitempty"`
}

// SkillInstalled is what was, or would be, installed.
type SkillInstalled struct {
	OK       bool           `json:"ok"`                // it was installed
	Message  string         `json:"message,omitempty"` // for people
	Name     string         `json:"name"`
	Skill    Skill          `json:"skill"`
	Origin   SkillOrigin    `json:"origin"`
	Warning  string         `json:"warning,omitempty"` // about SKILL.md
	Findings []SkillFinding `json:"findings"`
	Exists   bool           `json:"exists"`          // it replaces a skill
	Edited   bool           `json:"edited"`          // which was changed by hand
	Changes  []SkillChange  `json:"changes"`         // to that skill
	Old      *SkillOrigin   `json:"old,omitempty"`   // of that skill
	Error    string         `json:"error,omitempty"` // why it was not updated
}

// SkillFinding is something in a skill that a person should look at.
type SkillFinding struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"` // info, warn, critical
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Text     string `json:"text"`
}

// SkillChange is how a file of a skill changes.
type SkillChange struct {
	File string `json:"file"`
	How  string `json:"how"` // added, changed, removed
}

// SkillsUpdate holds the parameters of skills.update: settings of a skill, or which
// installed skills are updated.
type SkillsUpdate struct {
	Key     string             `json:"skillKey,omitempty"`
	Enabled *bool              `json:"enabled,omitempty"`
	APIKey  *string            `json:"apiKey,omitempty"` // "": it is removed
	Env     map[string]*string `json:"env,omitempty"`    // nil or "": the variable is removed

	AgentID string `json:"agentId,omitempty"`
	Source  string `json:"source,omitempty"`
	Slug    string `json:"slug,omitempty"` // name of an installed skill
	All     bool   `json:"all,omitempty"`
	Force   bool   `json:"force,omitempty"`
	Preview bool   `json:"preview,omitempty"`
	Hash    string `json:"sha256,omitempty"` // of the new files, with slug
}

// SkillsUpdated is the result of skills.update.
type SkillsUpdated struct {
	OK      bool             `json:"ok"`
	Key     string           `json:"skillKey,omitempty"`
	Updates []SkillInstalled `json:"updates"`
}

// SkillsRemove holds the parameters of skills.remove.
type SkillsRemove struct {
	AgentID string `json:"agentId,omitempty"` // from whose workspace; "": that of all agents
	Name    string `json:"name"`
}

// SkillRemoved is the result of skills.remove.
type SkillRemoved struct {
	OK      bool   `json:"ok"`
	Name    string `json:"name"`
	Removed string `json:"removed"` // its folder
}

// SkillsLibraryList holds the parameters of skills.library.list.
type SkillsLibraryList struct {
	SessionKey string `json:"sessionKey,omitempty"`
	Scope      string `json:"scope,omitempty"`
}

// SkillsLibrary is the result of skills.library.list: skills that persons keep apart from
// workspaces, of which Chela has none, and where the client may add skills.
type SkillsLibrary struct {
	Entries   []None  `json:"entries"`
	Profile   *string `json:"profileId"` // of the person; nil: there are no profiles
	Profiles  bool    `json:"multipleProfiles"`
	Target    string  `json:"defaultTarget"` // workspace or unavailable
	Workspace bool    `json:"canManageWorkspace"`
}
