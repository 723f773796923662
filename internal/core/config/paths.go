package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Flags is the flags of the command line that determine paths.
type Flags struct {
	Profile string // --profile: selects another state directory
}

// HistoryFile is the name of the file in the state directory with what was typed in the
// terminal: a JSON string a line.
const HistoryFile = "history"

// Paths is the files of an installation, all absolute.
type Paths struct {
	State    string // the state directory
	Config   string // the configuration file
	LastGood string // a copy of the last valid configuration
	Profile  string // name of the profile; empty: the default one
}

var profileName = pattern(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// Resolve determines the paths. The state directory is CHELA_STATE_DIR; if that is
// not set, ~/.chela-NAME for a profile (from the flag or CHELA_PROFILE), else
// ~/.chela. The configuration is CHELA_CONFIG_PATH, else chela.json in the state
// directory. For each variable that is not set, the variable with OPENCLAW_ instead
// of CHELA_ is used.
func Resolve(env func(string) string, flags Flags) (Paths, error) {
	profile := cmp.Or(flags.Profile, Variable(env, "PROFILE"))
	if profile == "default" {
		profile = ""
	}
	if profile != "" && !profileName().MatchString(profile) {
		return Paths{}, fmt.Errorf("profile %q: want letters, digits, - and _", profile)
	}
	home, err := homeDir(env)
	if err != nil {
		return Paths{}, err
	}
	p := Paths{Profile: profile, State: filepath.Join(home, ".chela")}
	if profile != "" {
		p.State += "-" + profile
	}
	if dir := Variable(env, "STATE_DIR"); dir != "" {
		p.State = expand(dir, home)
	}
	p.Config = filepath.Join(p.State, "chela.json")
	if file := Variable(env, "CONFIG_PATH"); file != "" {
		p.Config = expand(file, home)
	}
	for _, s := range []*string{&p.State, &p.Config} {
		if *s, err = filepath.Abs(*s); err != nil {
			return Paths{}, fmt.Errorf("state directory: %w", err)
		}
	}
	p.LastGood = filepath.Join(p.State, "chela.json.last-good")
	return p, nil
}

// homeDir returns the home directory: CHELA_HOME, else that of the user.
func homeDir(env func(string) string) (string, error) {
	if h := Variable(env, "HOME"); h != "" {
		return h, nil
	}
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if h := env(name); h != "" {
			return h, nil
		}
	}
	h, err := os.UserHomeDir()
	if err != nil || h == "" {
		return "", errors.New("home directory: HOME is not set; set CHELA_STATE_DIR")
	}
	return h, nil
}

// expand replaces a leading ~.
func expand(path, home string) string {
	if path == "~" {
		return home
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return path
}
