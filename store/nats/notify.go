package nats

import (
	"context"
	"fmt"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/ddd26017/fixpoint/store"
)

// noticesKept is how many notices wait for a slow listener. Those that come then are lost.
const noticesKept = 256

// Notify implements [store.Notifier]. Notices go over subjects that the stream does not
// keep. While the connection is lost they wait in its buffer, if there is room.
func (j *Journal) Notify(ctx context.Context, topic string, data []byte) error {
	if err := checkName("topic", topic); err != nil {
		return err
	}
	_, end, err := j.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if len(data) > store.MaxNotice {
		return fmt.Errorf("nats: a notice of %d bytes, and the limit is %d: %w", len(data), store.MaxNotice, store.ErrTooLarge)
	}
	if err := j.nc.Publish(j.subject(kindNotice, topic), data); err != nil {
		return fmt.Errorf("nats: notify: %w", err)
	}
	return nil
}

// Listen implements [store.Notifier]. When it returns, the server that this process is
// connected to knows of it; other servers of a cluster may take some milliseconds more.
func (j *Journal) Listen(ctx context.Context, topic string) (<-chan []byte, error) {
	if err := checkName("topic", topic); err != nil {
		return nil, err
	}
	listening, leave, err := j.enter(ctx)
	if err != nil {
		return nil, err
	}
	heard := make(chan *client.Msg, noticesKept)
	subscription, err := j.nc.ChanSubscribe(j.subject(kindNotice, topic), heard)
	if err == nil {
		err = j.flush(listening)
	}
	if err != nil {
		if subscription != nil {
			_ = subscription.Unsubscribe()
		}
		leave()
		return nil, fmt.Errorf("nats: listen: %w", err)
	}
	notices := make(chan []byte, noticesKept)
	go func() {
		defer leave()
		defer close(notices)
		defer func() { _ = subscription.Unsubscribe() }()
		closed := time.NewTicker(time.Second)
		defer closed.Stop()
		for {
			select {
			case msg := <-heard:
				passOn(notices, msg.Data)
			case <-closed.C: // the client does not say so here
				if j.nc.IsClosed() {
					return
				}
			case <-listening.Done():
				for len(heard) > 0 { // it came before
					passOn(notices, (<-heard).Data)
				}
				return
			}
		}
	}()
	return notices, nil
}

// passOn gives a notice to a listener who can follow.
func passOn(notices chan<- []byte, data []byte) {
	select {
	case notices <- data:
	default:
	}
}

// flush waits until the server has seen all that was sent.
func (j *Journal) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return j.nc.FlushWithContext(ctx)
}
