package postgres

import "strings"

// statements are the texts that are sent, with the name of the schema in them.
type statements struct {
	append                                 map[appendParts]string
	load, loadAt, threadsAll, threadsAfter string
	pruneLock, prunePoints, pruneRecords   string
	pruneSnapshots, pruneThread            string
	deleteAll                              []string
	acquire, leaseOf, renew, release       string
	promote, claim                         string
	settleDone, settleDead, settleRetry    string
	lanes, depth, dead, requeue            string
	notify                                 string
}

func newStatements(schema string) statements {
	names := strings.NewReplacer("{s}", quote(schema), "{tokens}", literal(quote(schema)+".tokens"))
	in := names.Replace
	s := statements{
		append: map[appendParts]string{},
		load:   in(loadSQL), loadAt: in(loadAtSQL), threadsAll: in(threadsAllSQL), threadsAfter: in(threadsAfterSQL),
		pruneLock: in(pruneLockSQL), prunePoints: in(prunePointsSQL), pruneRecords: in(pruneRecordsSQL),
		pruneSnapshots: in(pruneSnapshotsSQL), pruneThread: in(pruneThreadSQL),
		acquire: in(acquireSQL), leaseOf: in(leaseOfSQL), renew: in(renewSQL), release: in(releaseSQL),
		promote: in(promoteSQL), claim: in(claimSQL),
		settleDone: in(settleDoneSQL), settleDead: in(settleDeadSQL), settleRetry: in(settleRetrySQL),
		lanes: in(lanesSQL), depth: in(depthSQL), dead: in(deadSQL), requeue: in(requeueSQL),
		notify: notifySQL,
	}
	for _, sql := range deleteSQL {
		s.deleteAll = append(s.deleteAll, in(sql))
	}
	for n := range 16 {
		p := appendParts{n&1 != 0, n&2 != 0, n&4 != 0, n&8 != 0}
		s.append[p] = in(appendSQL(p))
	}
	return s
}
