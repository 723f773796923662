package pathpolicy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
)

func TestPrivate(t *testing.T) {
	t.Parallel()
	for want, names := range map[bool]string{
		true: ".env .ENV .envrc .env.local .ssh .SSH .gnupg .aws .azure .kube .docker .netrc _netrc .npmrc .pypirc .pgpass .my.cnf .git-credentials .password-store .vault-token " +
			".bash_history .zsh_history credentials Credentials.json id_rsa id_ed25519 id_ecdsa id_dsa secrets.json secrets.yaml secrets.yml token.json .chela .chela-work .openclaw " +
			"chela.db chela.db-wal a.pem a.key A.KEY a.p12 a.pfx a.kdbx a.keystore a.jks " +
			".env~ .env.bak prod.env Prod.ENV app.local.env kubeconfig .dockercfg .htpasswd a.ppk a.ovpn terraform.tfstate terraform.tfstate.backup service-account.json service-account-prod.json service_account.json " +
			"secret.json secrets.toml .vault_pass .s3cfg .boto rclone.conf .psql_history .mysql_history",
		false: "env .env.example .env.sample .env.template .env.dist .env.md .environment ssh notes.md id_rsa.pub .gitconfig chela.md secrets credentials.md token key pem a.keys .bashrc " +
			"example.env sample.env app.example.env template.env .flaskenv kubeconfig.md terraform.tf tfstate service-account.md service-accounts.go token.txt auth.json boto rclone.md .env.example~",
	} {
		for _, name := range strings.Fields(names) {
			if got := pathpolicy.Private(name); got != want {
				t.Errorf("%s is private: %v", name, got)
			}
		}
	}
}

func TestPrivatePath(t *testing.T) {
	t.Parallel()
	for want, paths := range map[bool]string{
		true: "/etc/shadow /etc/shadow- /etc/gshadow /etc/sudoers /etc/sudoers.d/x /etc/ssl/private/x /var/lib/chela /var/lib/chela/x /ETC/Shadow " +
			"/proc/1/environ /proc/self /dev/sda /dev/mem /srv/a/.ssh/config /srv/.env /srv/x/id_rsa " +
			"/data/anna/.config/x /DATA/Anna/.config /data/anna/.x /home/ben/.config/x /Users/ben/.x /root/.x",
		false: "/ /etc /etc/passwd /etc/ssl/certs/x /var/lib/other /proc /proc/cpuinfo /proc/meminfo /proc/version /proc/uptime /proc/loadavg /proc/stat /proc/filesystems /proc/devices " +
			"/dev /dev/null /dev/zero /dev/stdin /dev/stdout /dev/stderr /data/anna /data/anna/x/.config /data/anna/notes /data/ben/.config /home/ben/x /home/.x /srv/.config/x a/proc/1",
	} {
		for _, path := range strings.Fields(paths) {
			if got := pathpolicy.PrivatePath(path, "/data/Anna"); got != want {
				t.Errorf("%s is private: %v", path, got)
			}
		}
	}
}

func TestExposed(t *testing.T) {
	t.Parallel()
	never := []string{"/state", "/srv/chela.json"}
	for _, tt := range []struct{ path, workspace, want string }{
		{"/state", "/ws", "/state"}, {"/state/db", "/ws", "/state"}, {"/", "/ws", "/state"},
		{"/srv", "/ws", "/srv/chela.json"}, {"/srv/chela.json", "/ws", "/srv/chela.json"},
		{"/srv/x", "/ws", ""}, {"/states", "/ws", ""}, {"/ws/x", "/ws", ""},
		{"/state/ws/x", "/state/ws", ""}, {"/state/ws", "/state/ws", ""}, {"/state/db", "/state/ws", "/state"},
		{"/state", "/state/ws", "/state"}, {"/srv", "/srv", ""}, {"/srv/chela.json", "/srv", "/srv/chela.json"},
	} {
		if got := pathpolicy.Exposed(tt.path, tt.workspace, never); got != tt.want {
			t.Errorf("%s with the workspace %s: %q, want %q", tt.path, tt.workspace, got, tt.want)
		}
	}
}

func TestPublicCertificates(t *testing.T) {
	t.Parallel()
	const cert = "# Issuer: CN=Example Root\n-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
	const key = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"
	for _, tt := range []struct {
		name, content string
		want          bool
	}{
		{".venv/lib/python3.13/site-packages/certifi/cacert.pem", cert + cert, true},
		{"vendor/x/ca.PEM", strings.ReplaceAll(cert, "CERTIFICATE", "TRUSTED CERTIFICATE"), true},
		{"site-packages/a/server.pem", cert + key, false},
		{"site-packages/a/other.pem", cert + strings.ReplaceAll(key, "PRIVATE", "RSA PRIVATE"), false},
		{"site-packages/a/old.pem", cert + strings.ReplaceAll(key, "PRIVATE KEY", "OPENSSH THING"), false},
		{"site-packages/a/empty.pem", "", false},
		{"site-packages/a/big.pem", cert + strings.Repeat("#", 2<<20), false},
		{"site-packages/a/cert.key", cert, false},
		{"site-packages/.ssh/ca.pem", cert, false},
		{"certs/ca.pem", cert, false},
	} {
		t.Run("E1 "+tt.name, func(t *testing.T) {
			name := filepath.Join(pathpolicy.Real(t.TempDir()), tt.name)
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(tt.content), 0o644); err != nil {
				t.Fatal(err)
			}
			if got := pathpolicy.PublicCertificates(name); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
			link := filepath.Join(filepath.Dir(name), "link.pem")
			if err := os.Symlink(name, link); err == nil && pathpolicy.PublicCertificates(link) {
				t.Error("a link is public")
			}
		})
	}
}
