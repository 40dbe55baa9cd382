// Package nats keeps threads in a stream of NATS JetStream, which several processes on
// several machines share: journal, leases, outbox, queue and notices.
//
//	journal, err := nats.Open(ctx, "nats://10.0.0.1:4222,nats://10.0.0.2:4222", nats.Options{
//		Monitors: []string{"http://10.0.0.1:8222", "http://10.0.0.2:8222", "http://10.0.0.3:8222"},
//	})
//	if err != nil {
//		return err
//	}
//	defer journal.Close()
//
// The servers must be version 2.12 or newer, with JetStream.
//
// # What an acknowledged commit means
//
// A majority of the stream's servers, three unless Options.Replicas says else, has it. It
// survives a loss of power of all of them only if each syncs every write, which is not the
// default of the server: set
//
//	jetstream { sync_interval: always }
//
// Open asks the servers that have the stream, over Options.Monitors or Options.System,
// and fails with [ErrNotSynced] if one does not or cannot be asked, unless
// Options.AssumeSynced says that all do, or Options.AllowUnsynced goes without; Caps tells.
// Servers that are down, as long as those that were asked are a majority, and servers that
// get the stream later are not asked.
//
// # How it is kept
//
// A commit is one message on its thread's subject, which lands only if the thread's last
// message is the one that the commit builds on. Effects, what it settles, and what is too
// large for one message go with it as one atomic batch of up to 1,000 messages. Each message
// names the snapshot and the 32 messages before it, so that a load fetches 32 at a time. An
// effect is a subject, too; claims, retries and settlements are messages that land only if
// nobody else's came first.
//
// Reads are answered by the leader of the stream. A former leader may answer for a moment
// after it was deposed, so nothing that matters is decided by a read: that a revision is
// taken or a lease has moved on is proved by the message that says so; everything else is
// decided by a write. Errors of the server that may be false conflicts (10164, and 10071
// after it) are never reported; the commit is repeated.
//
// The stream is made by Open, and never changed. One that has other settings is refused
// with [ErrStream]. Its limit of bytes may be set by hand: a full stream refuses appends and
// drops nothing.
//
// # Unknown outcomes
//
// A call repeats what it sent, under the same id, until it knows the outcome, its context
// ends, or Options.Patience is over. Then Append returns [store.ErrUnknownOutcome], and to
// repeat it with the same id is safe, whoever has written meanwhile.
//
// # Clocks
//
// Leases, claims and effects that wait run by the clock of the process that looks at them,
// Options.Now. Clocks that differ make a lease or claim end early or late, and are no
// danger: an owner or worker that was taken over from is fenced off by revision and epoch.
//
// # What it costs
//
// A commit without effects is one message; to emit an effect, claim it and settle it are
// three, and to delete them, half a minute later, six requests. With one replica a batch is
// several times slower than a message, because the server keeps it in files of its own first.
//
// Every process that claims keeps the outbox in memory, about 300 bytes an effect without
// its body. It reads it all when it begins, some 50,000 effects a second, and has a consumer
// from then on that is told of each change of an effect, so what the servers have to do for
// an effect grows with the number of such processes. [Journal.Threads] reads the ids of all
// threads. Every effect, and every thread, is a subject, which the servers keep in memory.
//
// # Permissions
//
// A user of the store must be allowed to publish to fixpoint.> (Options.Prefix), to
// $JS.API.STREAM.{INFO,CREATE,PURGE,MSG.GET,MSG.DELETE}.FIXPOINT (Options.Stream) and to
// $JS.API.CONSUMER.>, and to listen to fixpoint.n.> and _INBOX.>.
package nats
