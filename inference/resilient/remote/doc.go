// Package remote has what all adapters of models need that ask a service by HTTP, whatever its protocol: where the
// service is and with which key, a client that takes the key nowhere else, and a [resilient.Failure] of whatever a
// request ended with. The adapter itself only says how its service complains:
//
//	x := remote.Exchange{Provider: "acme", Model: r.Model, Response: answer, Partial: began, Secrets: secrets}
//	return x.Failure(ctx, err, func(status int) (remote.Complaint, bool) {
//		said, ok := readError(err)
//		return remote.Complaint{Class: classOf(said.Type, status), Code: said.Type, Message: said.Message}, ok
//	})
//
// It imports the standard library and package resilient only. The kit that tests an adapter is contrib/model/modeltest.
package remote
