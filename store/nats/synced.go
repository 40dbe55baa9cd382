package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrNotSynced is returned by Open when the servers do not sync every write, or could not
// be asked.
var ErrNotSynced = errors.New("nats: it is not known that the servers sync every write")

// checkSynced reports whether an acknowledged message survives a loss of power on all
// servers of the stream. One that has just started may take a moment to answer.
func (j *Journal) checkSynced(ctx context.Context, o Options, info *jetstream.StreamInfo) (bool, error) {
	if o.AssumeSynced {
		return true, nil
	}
	var err error
	for began := time.Now(); ; {
		servers, failed := j.askServers(ctx, o)
		err = whoDoesNotSync(j.peers(info), servers)
		if err == nil {
			return true, nil
		}
		late := time.Since(began) > 2*attemptTimeout || ctx.Err() != nil
		if late || o.AllowUnsynced || !errors.Is(err, errNotAsked) || o.System == nil && len(o.Monitors) == 0 {
			if failed != nil {
				err = fmt.Errorf("%w: %w", err, failed)
			}
			break
		}
		pause(ctx, 10, nil)
		if newer, err := j.js.Stream(ctx, o.Stream); err == nil {
			info = newer.CachedInfo()
		}
	}
	if o.AllowUnsynced {
		return false, nil
	}
	return false, fmt.Errorf("%w: %w; set sync_interval: always in their jetstream block and give Options.Monitors or Options.System, or set Options.AssumeSynced or Options.AllowUnsynced", ErrNotSynced, err)
}

// peer is a server that has the stream.
type peer struct {
	name string
	down bool
}

func (j *Journal) peers(info *jetstream.StreamInfo) []peer {
	if info.Cluster == nil || info.Cluster.Leader == "" {
		return []peer{{name: j.nc.ConnectedServerName()}}
	}
	peers := []peer{{name: info.Cluster.Leader}}
	for _, replica := range info.Cluster.Replicas {
		peers = append(peers, peer{replica.Name, replica.Offline})
	}
	return peers
}

// server is what one says of itself; the same fields come from both ways to ask.
type server struct {
	Name      string `json:"server_name"`
	JetStream struct {
		Config struct {
			SyncAlways bool `json:"sync_always"`
		} `json:"config"`
	} `json:"jetstream"`
}

var errNotAsked = errors.New("was not asked")

// whoDoesNotSync finds a server of the stream that does not sync every write or was not
// asked. Those that are down need not be asked as long as the others are a majority, since
// every acknowledgement is theirs then.
func whoDoesNotSync(peers []peer, servers []server) error {
	var missing error
	asked := 0
	for _, p := range peers {
		i := slices.IndexFunc(servers, func(s server) bool { return s.Name == p.name })
		switch {
		case i >= 0 && !servers[i].JetStream.Config.SyncAlways:
			return fmt.Errorf("server %s does not sync every write", p.name)
		case i >= 0:
			asked++
		case !p.down || missing == nil:
			missing = fmt.Errorf("server %s %w", p.name, errNotAsked)
			if !p.down {
				asked = -len(peers) // no majority can make up for it
			}
		}
	}
	if 2*asked > len(peers) {
		return nil
	}
	return missing
}

// askServers asks all servers that there is a way to. Some may have answered when there is
// an error.
func (j *Journal) askServers(ctx context.Context, o Options) (servers []server, failed error) {
	if o.System != nil {
		found, err := askSystem(ctx, o.System)
		if err != nil {
			failed = fmt.Errorf("ask the system account: %w", err)
		}
		servers = found
	}
	for _, url := range o.Monitors {
		s, err := askMonitor(ctx, url)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("ask %s: %w", url, err))
			continue
		}
		servers = append(servers, s)
	}
	return servers, failed
}

func askMonitor(ctx context.Context, url string) (s server, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+"/varz", nil)
	if err != nil {
		return s, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return s, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return s, fmt.Errorf("it answers %s", answer.Status)
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&s)
	return s, err
}

// askSystem asks all servers at once, and takes those that answer within a second of each
// other.
func askSystem(ctx context.Context, nc *client.Conn) ([]server, error) {
	inbox, err := nc.SubscribeSync(nc.NewRespInbox())
	if err != nil {
		return nil, err
	}
	defer func() { _ = inbox.Unsubscribe() }()
	if err := nc.PublishRequest("$SYS.REQ.SERVER.PING.VARZ", inbox.Subject, nil); err != nil {
		return nil, err
	}
	var servers []server
	for {
		wait, cancel := context.WithTimeout(ctx, time.Second)
		msg, err := inbox.NextMsgWithContext(wait)
		cancel()
		if err != nil {
			if len(servers) > 0 && errors.Is(err, context.DeadlineExceeded) {
				return servers, ctx.Err()
			}
			return nil, err
		}
		var answer struct {
			Data server `json:"data"`
		}
		if err := json.Unmarshal(msg.Data, &answer); err != nil {
			return nil, err
		}
		servers = append(servers, answer.Data)
	}
}
