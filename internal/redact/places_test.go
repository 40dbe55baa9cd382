package redact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/redact"
)

// Credentials are found where they are written down in practice: in commands, in JSON
// that is broken or within texts, in lists, in addresses.
func TestCredentialsInPlaces(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x1Y", n/3+1)[:n] }
	for text, want := range map[string]string{
		// JSON within a text, of whatever depth, and JSON that ends too early.
		`say {\"password\":\"hunter22\"} now`:             `say {\"password\":\"[hidden]\"} now`,
		`say {\\\"api_key\\\": \\\"hunter22\\\"}`:         `say {\\\"api_key\\\": \\\"[hidden]\\\"}`,
		`say {\"a\":{\"password\":\"hunter22\",\"b\":1}}`: `say {\"a\":{\"password\":\"[hidden]\",\"b\":1}}`,
		`{"user":"me","password":"hunter22`:               `{"user":"me","password":"[hidden]"`,
		`{"user":"me","password":"hunter22\`:              `{"user":"me","password":"[hidden]"`,
		`{"password":"hun\"ter22"} end`:                   `{"password":"[hidden]"} end`,
		`{"password":"hunter22\\"} end`:                   `{"password":"[hidden]"} end`,
		`200 OK {"pwd":"hunter22","n":1}`:                 `200 OK {"pwd":"[hidden]","n":1}`,
		`200 OK {"session_id":"hunter22"}`:                `200 OK {"session_id":"[hidden]"}`,
		`200 OK {"credentials" : "hunter22"}`:             `200 OK {"credentials" : "[hidden]"}`,
		`200 OK {"password":12345678}`:                    `200 OK {"password":[hidden]}`,
		// Commands.
		`mysql --password hunter22 db`:                            `mysql --password [hidden] db`,
		`gh --token=hunter22 x`:                                   `gh --token=[hidden] x`,
		`login --api-key 'hunter22' x`:                            `login --api-key [hidden] x`,
		`login --client-secret "hunter22" x`:                      `login --client-secret [hidden] x`,
		`curl -u me:hunter22 https://h/`:                          `curl -u me:[hidden] https://h/`,
		`curl -s --user 'me:hunter22' https://h/`:                 `curl -s --user 'me:[hidden]' https://h/`,
		`docker run -u 1000:1000 image`:                           `docker run -u 1000:1000 image`,
		`curl -H "Authorization: token hunter22" h`:               `curl -H "Authorization: [hidden]" h`,
		`curl -H 'authorization: Bearer short' h`:                 `curl -H 'authorization: [hidden]' h`,
		`curl -H 'X-Api-Key: hunter22' h`:                         `curl -H 'X-Api-Key: [hidden]' h`,
		`curl -H "Cookie: sid=hunter22; a=b" h`:                   `curl -H "Cookie: [hidden]" h`,
		`curl -H \"Authorization: Bearer short\" h`:               `curl -H \"Authorization: [hidden]\" h`,
		`10:00:01 sent Authorization: Bearer short1 to h`:         `10:00:01 sent Authorization: Bearer [hidden] to h`,
		`SMTP_PASS=hunter22 go run .`:                             `SMTP_PASS=[hidden] go run .`,
		`MYSQL_PWD=hunter22 mysql`:                                `MYSQL_PWD=[hidden] mysql`,
		`PWD=/home/me OLDPWD=/home go test`:                       `PWD=/home/me OLDPWD=/home go test`,
		`Server=h;Uid=me;Pwd=hunter22;Database=d`:                 `Server=h;Uid=me;Pwd=[hidden];Database=d`,
		`AccountName=a;AccountKey=` + x(40) + `==;EndpointSuffix`: `AccountName=a;AccountKey=[hidden];EndpointSuffix`,
		`DB_PASSWORD=hunt\er22 x`:                                 `DB_PASSWORD=[hidden] x`,
		`bypass=full compass=northwest`:                           `bypass=full compass=northwest`,
		// Lists.
		"- password: hunter22\n- b: c":   "- password: [hidden]\n- b: c",
		"a:\n  - token: hunter22 # mine": "a:\n  - token: [hidden] # mine",
		// Addresses.
		`redis://:p@ssw0rd@host:1/0`:                  `redis://:[hidden]@host:1/0`,
		`https://` + x(40) + `@host/me/repo.git`:      `https://[hidden]@host/me/repo.git`,
		`ssh://git@host/me/repo.git`:                  `ssh://git@host/me/repo.git`,
		`https:\/\/me:hunter22@host\/x`:               `https:\/\/me:[hidden]@host\/x`,
		`https://h/f?X-Amz-Signature=` + x(20) + `&a`: `https://h/f?X-Amz-Signature=[hidden]&a`,
		`https://h/f?sv=1&sig=` + x(20) + `%3D&se=2`:  `https://h/f?sv=1&sig=[hidden]&se=2`,
		`https://h/cb?code=` + x(20) + `&state=1`:     `https://h/cb?code=[hidden]&state=1`,
		`https://h/f?key=` + x(20):                    `https://h/f?key=[hidden]`,
		`https://h/a:80/b@c and http://h:80/x?m=a@b`:  `https://h/a:80/b@c and http://h:80/x?m=a@b`,
		`https://hooks.slack.com/services/T0/B0/abcd`: `https://hooks.slack.com/services/[hidden]`,
		// Keys of more services.
		"gsk_" + x(40) + " xai-" + x(40) + " r8_" + x(37): "[hidden] [hidden] [hidden]",
		"whsec_" + x(30) + " SG." + x(22) + "." + x(43):   "[hidden] [hidden]",
		"dop_v1_" + strings.Repeat("ab12", 16):            "[hidden]",
		"shpat_" + strings.Repeat("ab12", 8):              "[hidden]",
		"GOCSPX-" + x(28):                                 "[hidden]",
		"AGE-SECRET-KEY-1" + strings.Repeat("AB12", 14):   "[hidden]",
		"task-" + x(30) + " desk_" + x(20):                "task-" + x(30) + " desk_" + x(20),
	} {
		got := redact.Credentials(text, "[hidden]")
		if got != want {
			t.Errorf("%s\nwant %s\ngot  %s", text, want, got)
		}
		require.Equal(t, got, redact.Credentials(got, "[hidden]"), "once is enough")
		if text != got {
			require.True(t, redact.Suspect([]byte(text)), text)
		}
	}
}
