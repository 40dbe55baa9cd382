module github.com/ddd26017/fixpoint/internal/faults

go 1.25.0

replace (
	github.com/ddd26017/fixpoint => ../..
	github.com/ddd26017/fixpoint/store/bolt => ../../store/bolt
	github.com/ddd26017/fixpoint/store/nats => ../../store/nats
	github.com/ddd26017/fixpoint/store/nats/natstest => ../../store/nats/natstest
	github.com/ddd26017/fixpoint/store/postgres => ../../store/postgres
)

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/ddd26017/fixpoint v0.0.0-00010101000000-000000000000
	github.com/ddd26017/fixpoint/store/bolt v0.0.0-00010101000000-000000000000
	github.com/ddd26017/fixpoint/store/nats v0.0.0-00010101000000-000000000000
	github.com/ddd26017/fixpoint/store/nats/natstest v0.0.0-00010101000000-000000000000
	github.com/ddd26017/fixpoint/store/postgres v0.0.0-00010101000000-000000000000
	github.com/jackc/pgx/v5 v5.13.0
	github.com/nats-io/nats-server/v2 v2.14.5
	github.com/nats-io/nats.go v1.53.1
	github.com/stretchr/testify v1.12.1
	go.etcd.io/bbolt v1.5.0
	golang.org/x/sync v0.22.0
	golang.org/x/sys v0.47.0
)

require (
	github.com/antithesishq/antithesis-sdk-go v0.7.2-default-no-op // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/klauspost/compress v1.19.2 // indirect
	github.com/minio/highwayhash v1.0.4 // indirect
	github.com/nats-io/jwt/v2 v2.8.2 // indirect
	github.com/nats-io/nkeys v0.4.16 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/tidwall/btree v1.8.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.55.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	golang.org/x/time v0.15.0 // indirect
)
