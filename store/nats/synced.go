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
// servers of the stream.
func (j *Journal) checkSynced(ctx context.Context, o Options, info *jetstream.StreamInfo) (bool, error) {
	if o.AssumeSynced {
		return true, nil
	}
	servers, err := j.askServers(ctx, o)
	if err == nil {
		err = whoDoesNotSync(j.peers(info), servers)
	}
	switch {
	case err == nil:
		return true, nil
	case o.AllowUnsynced:
		return false, nil
	}
	return false, fmt.Errorf("%w: %w; set sync_interval: always in their jetstream block and give Options.Monitors or Options.System, or set Options.AssumeSynced or Options.AllowUnsynced", ErrNotSynced, err)
}

// peers returns the names of the servers that have the stream.
func (j *Journal) peers(info *jetstream.StreamInfo) []string {
	if info.Cluster == nil || info.Cluster.Leader == "" {
		return []string{j.nc.ConnectedServerName()}
	}
	names := []string{info.Cluster.Leader}
	for _, peer := range info.Cluster.Replicas {
		names = append(names, peer.Name)
	}
	return names
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

func whoDoesNotSync(peers []string, servers []server) error {
	for _, name := range peers {
		i := slices.IndexFunc(servers, func(s server) bool { return s.Name == name })
		if i < 0 {
			return fmt.Errorf("server %s was not asked", name)
		}
		if !servers[i].JetStream.Config.SyncAlways {
			return fmt.Errorf("server %s does not sync every write", name)
		}
	}
	return nil
}

// askServers asks all servers that there is a way to.
func (j *Journal) askServers(ctx context.Context, o Options) ([]server, error) {
	var servers []server
	if o.System != nil {
		found, err := askSystem(ctx, o.System)
		if err != nil {
			return nil, fmt.Errorf("ask the system account: %w", err)
		}
		servers = found
	}
	for _, url := range o.Monitors {
		s, err := askMonitor(ctx, url)
		if err != nil {
			return nil, fmt.Errorf("ask %s: %w", url, err)
		}
		servers = append(servers, s)
	}
	return servers, nil
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
