package nats

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrStream is returned by Open when the stream cannot be made, or is there with settings
// that the store cannot work with. It is never changed.
var ErrStream = errors.New("nats: the stream does not fit")

// minVersion is the first server that publishes atomic batches.
var minVersion = [2]int{2, 12}

func lower(name string) string { return strings.ToLower(name) }

func validStream(name string) bool {
	return name != "" && len(name) <= 255 && strings.IndexFunc(name, func(r rune) bool { return r > 127 || !plain(byte(r)) }) < 0
}

func validPrefix(prefix string) bool {
	if len(prefix) > 255 {
		return false
	}
	return !slices.ContainsFunc(strings.Split(prefix, "."), func(token string) bool { return !validStream(token) })
}

// config is what the stream of a store is like. Its leader alone answers reads, because
// others may be behind. It has no limits that drop old messages.
func config(o Options) jetstream.StreamConfig {
	var subjects []string
	for _, kind := range []string{kindJournal, kindLease, kindPart, kindEffect, kindConfirm} {
		subjects = append(subjects, o.Prefix+"."+kind+".>")
	}
	return jetstream.StreamConfig{
		Name:               o.Stream,
		Description:        "Fixpoint threads",
		Subjects:           subjects,
		Retention:          jetstream.LimitsPolicy,
		Storage:            jetstream.FileStorage,
		Discard:            jetstream.DiscardNew,
		Replicas:           o.Replicas,
		Placement:          o.Placement,
		MaxMsgs:            -1,
		MaxBytes:           -1,
		MaxMsgsPerSubject:  -1,
		MaxMsgSize:         -1,
		MaxConsumers:       -1,
		AllowMsgTTL:        true,
		AllowAtomicPublish: true,
	}
}

// openStream makes the stream, or checks the one that is there, and learns what an
// acknowledgement of its servers means.
func (j *Journal) openStream(ctx context.Context, o Options) error {
	if err := checkVersion(j.nc.ConnectedServerVersion()); err != nil {
		return err
	}
	var err error
	if o.Domain != "" {
		j.js, err = jetstream.NewWithDomain(j.nc, o.Domain)
	} else {
		j.js, err = jetstream.New(j.nc)
	}
	if err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	want := config(o)
	if err := j.findStream(ctx, want); err != nil {
		return err
	}
	info := j.stream.CachedInfo()
	if difference := compare(want, info.Config); difference != "" {
		return fmt.Errorf("%w: %s has %s; choose another Options.Stream, or change the stream", ErrStream, o.Stream, difference)
	}
	if j.threads.stream, err = j.js.Stream(ctx, o.Stream); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrStream, o.Stream, err)
	}
	j.synced, err = j.checkSynced(ctx, o, info)
	return err
}

// findStream finds the stream, or makes it. Several processes may do so at once.
func (j *Journal) findStream(ctx context.Context, want jetstream.StreamConfig) error {
	for try := 0; ; try++ {
		once, cancel := j.attempt(ctx, attemptTimeout)
		var err error
		j.stream, err = j.js.Stream(once, want.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			j.stream, err = j.js.CreateStream(once, want)
		}
		cancel()
		if err == nil {
			return nil
		}
		var api *jetstream.APIError
		switch {
		case errors.Is(err, jetstream.ErrStreamNameAlreadyInUse):
			// Somebody else has just made it.
		case errors.Is(err, client.ErrNoResponders) && try > 8:
			return fmt.Errorf("%w: %s: the servers have no JetStream, or not for this account: %w", ErrStream, want.Name, err)
		case errors.As(err, &api) && api.Code < 500, errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.As(err, &api) && api.ErrorCode == codeReplicas:
			return fmt.Errorf("%w: %s with %d replicas: %w", ErrStream, want.Name, want.Replicas, err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %s: %w", ErrStream, want.Name, ended(ctx, false, err))
		}
		pause(ctx, try, err)
	}
}

// codeReplicas is the answer of a server without a cluster to a stream with replicas.
const codeReplicas = 10074

func checkVersion(version string) error {
	var have [2]int
	_, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &have[0], &have[1])
	if err != nil || slices.Compare(have[:], minVersion[:]) < 0 {
		return fmt.Errorf("nats: the server is version %q; the store needs %d.%d or newer, for atomic batches", version, minVersion[0], minVersion[1])
	}
	return nil
}

// compare says which setting of a stream is not as it must be, or "".
func compare(want, have jetstream.StreamConfig) string {
	unlimited := func(n int64) bool { return n <= 0 }
	var differences []string
	differ := func(setting string, want, have any) {
		if !reflect.DeepEqual(want, have) {
			differences = append(differences, fmt.Sprintf("%s %v where %v is needed", setting, have, want))
		}
	}
	slices.Sort(want.Subjects)
	slices.Sort(have.Subjects)
	differ("subjects", want.Subjects, have.Subjects)
	differ("retention", want.Retention, have.Retention)
	differ("storage", want.Storage, have.Storage)
	differ("num_replicas", want.Replicas, have.Replicas)
	differ("discard", want.Discard, have.Discard)
	differ("unlimited max_msgs", true, unlimited(have.MaxMsgs))
	differ("unlimited max_msgs_per_subject", true, unlimited(have.MaxMsgsPerSubject))
	differ("unlimited max_msg_size", true, unlimited(int64(have.MaxMsgSize)))
	differ("max_age", want.MaxAge, have.MaxAge)
	differ("no_ack", false, have.NoAck)
	differ("sealed", false, have.Sealed)
	differ("deny_purge", false, have.DenyPurge)
	differ("allow_direct", false, have.AllowDirect)
	differ("deny_delete", false, have.DenyDelete)
	differ("allow_msg_ttl", true, have.AllowMsgTTL)
	differ("allow_atomic", true, have.AllowAtomicPublish)
	differ("persist_mode", want.PersistMode, have.PersistMode)
	differ("mirror", false, have.Mirror != nil)
	differ("sources", 0, len(have.Sources))
	differ("subject_transform", false, have.SubjectTransform != nil)
	return strings.Join(differences, ", ")
}
