package nats

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

func TestReadAck(t *testing.T) {
	t.Parallel()
	const landed, moved, busy, refused, lost = "landed", "moved", "busy", "refused", "lost"
	for _, tt := range []struct {
		answer string
		n      int
		want   string
	}{
		{`{"stream":"S","seq":7}`, 1, landed},
		{`{"stream":"S","seq":7,"batch":"b","count":3}`, 3, landed},
		{`{"stream":"S","seq":7,"batch":"b","count":2}`, 3, lost},
		{`{"stream":"T","seq":7}`, 1, lost},
		{`{"stream":"S","seq":0}`, 1, lost},
		{``, 1, lost},
		{`{`, 1, lost},
		{`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 9"},"stream":"S","seq":0}`, 1, moved},
		{`{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"}}`, 1, busy},
		{`{"error":{"code":400,"err_code":10176,"description":"batch is incomplete"}}`, 2, busy},
		{`{"error":{"code":429,"err_code":10210,"description":"too many inflight"}}`, 2, busy},
		{`{"error":{"code":400,"err_code":10199,"description":"too large"}}`, 2, refused},
		{`{"error":{"code":400,"err_code":10054,"description":"exceeds maximum"}}`, 1, refused},
		{`{"error":{"code":503,"err_code":10077,"description":"store failed"}}`, 1, lost},
		{`{"error":{"code":500,"err_code":1,"description":"news"}}`, 1, lost},
	} {
		seq, err := readAck([]byte(tt.answer), "S", tt.n)
		var kind *refusedError
		var gone *lostError
		switch tt.want {
		case landed:
			require.NoError(t, err, tt.answer)
			require.EqualValues(t, 7, seq, tt.answer)
		case moved:
			require.ErrorIs(t, err, errMoved, tt.answer)
		case busy:
			require.ErrorIs(t, err, errBusy, tt.answer)
		case refused:
			require.ErrorAs(t, err, &kind, tt.answer)
		case lost:
			require.ErrorAs(t, err, &gone, tt.answer)
		}
		require.Equal(t, tt.want == lost, mayHaveLanded(err), tt.answer)
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	o, err := Options{}.complete()
	require.NoError(t, err)
	require.Equal(t, "fixpoint", o.Prefix)
	want := config(o)
	have := config(o)
	have.MaxBytes, have.MaxMsgs = 1<<40, 0 // unlimited, too
	require.Empty(t, compare(want, have))
	for setting, change := range map[string]func(*jetstream.StreamConfig){
		"subjects":             func(c *jetstream.StreamConfig) { c.Subjects = c.Subjects[1:] },
		"retention":            func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy },
		"storage":              func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"num_replicas":         func(c *jetstream.StreamConfig) { c.Replicas = 1 },
		"discard":              func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
		"max_msgs":             func(c *jetstream.StreamConfig) { c.MaxMsgs = 10 },
		"max_msgs_per_subject": func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 },
		"max_msg_size":         func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1 },
		"max_age":              func(c *jetstream.StreamConfig) { c.MaxAge = 1 },
		"allow_direct":         func(c *jetstream.StreamConfig) { c.AllowDirect = true },
		"allow_atomic":         func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false },
		"allow_msg_ttl":        func(c *jetstream.StreamConfig) { c.AllowMsgTTL = false },
		"deny_purge":           func(c *jetstream.StreamConfig) { c.DenyPurge = true },
		"deny_delete":          func(c *jetstream.StreamConfig) { c.DenyDelete = true },
		"no_ack":               func(c *jetstream.StreamConfig) { c.NoAck = true },
		"mirror":               func(c *jetstream.StreamConfig) { c.Mirror = &jetstream.StreamSource{} },
		"sources":              func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{{}} },
		"subject_transform":    func(c *jetstream.StreamConfig) { c.SubjectTransform = &jetstream.SubjectTransformConfig{} },
	} {
		have := config(o)
		change(&have)
		require.Contains(t, compare(want, have), setting+" ", setting)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for version, good := range map[string]bool{"2.12.0": true, "v2.14.5": true, "3.0.0-dev": true, "2.11.9": false, "1.99.0": false, "": false, "x": false} {
		require.Equal(t, good, checkVersion(version) == nil, version)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for text, o := range map[string]Options{
		"Options.Stream":   {Stream: "a.b"},
		"Options.Prefix":   {Prefix: "a..b"},
		"Options.Replicas": {Replicas: 6},
		"Options.MaxBytes": {MaxBytes: -1},
		"Options.Patience": {Patience: -1},
	} {
		_, err := o.complete()
		require.ErrorContains(t, err, text)
	}
}

func TestWhoDoesNotSync(t *testing.T) {
	t.Parallel()
	synced := func(name string) (s server) {
		s.Name, s.JetStream.Config.SyncAlways = name, true
		return s
	}
	up, down := func(name string) peer { return peer{name: name} }, func(name string) peer { return peer{name, true} }
	require.NoError(t, whoDoesNotSync([]peer{up("a"), up("b")}, []server{synced("b"), synced("c"), synced("a")}))
	require.ErrorContains(t, whoDoesNotSync([]peer{up("a"), up("b")}, []server{synced("b")}), "server a was not asked")
	require.ErrorContains(t, whoDoesNotSync([]peer{up("a"), up("b")}, []server{synced("b"), {Name: "a"}}), "server a does not sync")
	require.NoError(t, whoDoesNotSync([]peer{up("a"), down("b"), up("c")}, []server{synced("a"), synced("c")}))
	require.ErrorContains(t, whoDoesNotSync([]peer{up("a"), down("b"), up("c")}, []server{synced("a"), synced("b")}), "server c was not asked")
	require.ErrorContains(t, whoDoesNotSync([]peer{up("a"), down("b"), down("c")}, []server{synced("a")}), "was not asked")
	require.ErrorContains(t, whoDoesNotSync([]peer{down("a")}, nil), "server a was not asked")
}
