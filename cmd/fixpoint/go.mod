module github.com/ddd26017/fixpoint/cmd/fixpoint

go 1.25.0

replace (
	github.com/ddd26017/fixpoint => ../..
	github.com/ddd26017/fixpoint/contrib/jsonschema => ../../contrib/jsonschema
	github.com/ddd26017/fixpoint/contrib/mcp => ../../contrib/mcp
	github.com/ddd26017/fixpoint/contrib/model/anthropic => ../../contrib/model/anthropic
	github.com/ddd26017/fixpoint/contrib/model/gemini => ../../contrib/model/gemini
	github.com/ddd26017/fixpoint/contrib/model/modeltest => ../../contrib/model/modeltest
	github.com/ddd26017/fixpoint/contrib/model/openai => ../../contrib/model/openai
	github.com/ddd26017/fixpoint/store/bolt => ../../store/bolt
)

require (
	github.com/charmbracelet/lipgloss v1.1.0
	github.com/charmbracelet/x/ansi v0.8.0
	github.com/chromedp/cdproto v0.160.1
	github.com/chromedp/chromedp v0.23.1
	github.com/ddd26017/fixpoint v0.0.0-00010101000000-000000000000
	github.com/ddd26017/fixpoint/contrib/jsonschema v0.0.0-00010101000000-000000000000
	github.com/ddd26017/fixpoint/contrib/mcp v0.0.0-00010101000000-000000000000
	github.com/ddd26017/fixpoint/contrib/model/anthropic v0.0.0-00010101000000-000000000000
	github.com/ddd26017/fixpoint/contrib/model/gemini v0.0.0-00010101000000-000000000000
	github.com/ddd26017/fixpoint/contrib/model/openai v0.0.0-00010101000000-000000000000
	github.com/ddd26017/fixpoint/contrib/plugins/allowlist v0.0.0-00010101000000-000000000000
	github.com/ddd26017/fixpoint/contrib/plugins/exechook v0.0.0-00010101000000-000000000000
	github.com/ddd26017/fixpoint/store/bolt v0.0.0-00010101000000-000000000000
	github.com/ddd26017/fixpoint/store/nats/natstest v0.0.0-00010101000000-000000000000
	github.com/goccy/go-yaml v1.19.2
	github.com/modelcontextprotocol/go-sdk v1.8.0
	github.com/muesli/termenv v0.16.0
	github.com/nats-io/nats.go v1.53.1
	github.com/spf13/cobra v1.10.2
	github.com/stretchr/testify v1.12.1
	golang.org/x/term v0.45.0
)

require (
	github.com/antithesishq/antithesis-sdk-go v0.7.2-default-no-op // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.13.0 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/klauspost/compress v1.19.2 // indirect
	github.com/minio/highwayhash v1.0.4 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/nats-io/jwt/v2 v2.8.2 // indirect
	github.com/nats-io/nats-server/v2 v2.14.5 // indirect
	github.com/nats-io/nkeys v0.4.16 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/prometheus/client_model v0.6.2 // indirect
	github.com/prometheus/common v0.70.1 // indirect
	github.com/prometheus/procfs v0.21.1 // indirect
)

require (
	cloud.google.com/go v0.116.0 // indirect
	cloud.google.com/go/auth v0.9.3 // indirect
	cloud.google.com/go/compute/metadata v0.5.0 // indirect
	github.com/anthropics/anthropic-sdk-go v1.84.0 // indirect
	github.com/aymanbagabas/go-osc52/v2 v2.0.1 // indirect
	github.com/bahlo/generic-list-go v0.2.0 // indirect
	github.com/buger/jsonparser v1.1.2 // indirect
	github.com/charmbracelet/colorprofile v0.2.3-0.20250311203215-f60798e515dc // indirect
	github.com/charmbracelet/x/cellbuf v0.0.13-0.20250311204145-2c3ea96c31dd // indirect
	github.com/charmbracelet/x/term v0.2.1 // indirect
	github.com/coder/websocket v1.8.15 // indirect
	github.com/ddd26017/fixpoint/store/nats v0.0.0-00010101000000-000000000000
	github.com/ddd26017/fixpoint/store/postgres v0.0.0-00010101000000-000000000000
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/go-logr/logr v1.4.2 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/golang/groupcache v0.0.0-20210331224755-41bb18bfe9da // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	github.com/google/s2a-go v0.1.8 // indirect
	github.com/googleapis/enterprise-certificate-proxy v0.3.4 // indirect
	github.com/gorilla/websocket v1.5.3 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/invopop/jsonschema v0.14.0 // indirect
	github.com/lucasb-eyer/go-colorful v1.2.0 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/mattn/go-runewidth v0.0.16 // indirect
	github.com/openai/openai-go/v3 v3.74.0 // indirect
	github.com/pb33f/ordered-map/v2 v2.3.1 // indirect
	github.com/prometheus/client_golang v1.24.1
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // indirect
	github.com/segmentio/asm v1.1.3 // indirect
	github.com/segmentio/encoding v0.5.4 // indirect
	github.com/spf13/pflag v1.0.10
	github.com/standard-webhooks/standard-webhooks/libraries v0.0.1 // indirect
	github.com/tidwall/btree v1.8.2 // indirect
	github.com/tidwall/gjson v1.19.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	github.com/xo/terminfo v0.0.0-20220910002029-abceb7e1c41e // indirect
	github.com/yosida95/uritemplate/v3 v3.0.2 // indirect
	go.etcd.io/bbolt v1.5.0 // indirect
	go.opencensus.io v0.24.0 // indirect
	go.opentelemetry.io/auto/sdk v1.1.0 // indirect
	go.opentelemetry.io/otel v1.33.0 // indirect
	go.opentelemetry.io/otel/metric v1.33.0 // indirect
	go.opentelemetry.io/otel/trace v1.33.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	go.yaml.in/yaml/v4 v4.0.0-rc.2 // indirect
	golang.org/x/crypto v0.55.0 // indirect
	golang.org/x/net v0.58.0 // indirect
	golang.org/x/oauth2 v0.36.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	golang.org/x/time v0.15.0 // indirect
	google.golang.org/genai v1.77.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20240903143218-8af14fe29dc1 // indirect
	google.golang.org/grpc v1.66.2 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
	mvdan.cc/sh/v3 v3.13.1 // indirect
)

replace github.com/ddd26017/fixpoint/contrib/plugins/allowlist => ../../contrib/plugins/allowlist

replace github.com/ddd26017/fixpoint/contrib/plugins/exechook => ../../contrib/plugins/exechook

replace github.com/ddd26017/fixpoint/store/postgres => ../../store/postgres

replace github.com/ddd26017/fixpoint/store/nats => ../../store/nats

replace github.com/ddd26017/fixpoint/store/nats/natstest => ../../store/nats/natstest
