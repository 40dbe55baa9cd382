// Package elicit is a plugin with which an agent asks the user: for a text, one or
// several of some choices, a form, a yes or no, or a secret.
//
// The model calls the tool ask_user with a question:
//
//	{"kind": "choice", "message": "Which region?", "choices": ["eu", "us"], "default": "eu"}
//
// The question becomes a ticket like that of a gate: a resolver answers it in place, or
// the run waits for Thread.Resume. Answers are checked against the question's kind,
// choices and schema; schemas need Config.Schemas. The call's result is a JSON object,
// in its content and its details:
//
//	{"status": "answered", "kind": "choice", "value": "eu"}
//	{"status": "declined", "kind": "choice", "reason": "ask me tomorrow"}
//	{"status": "cancelled", "kind": "choice", "reason": "nobody answered in time"}
//	{"status": "answered", "kind": "secret", "handle": "9f0c"}
//
// A no to a question of kind confirm is an answer, whose value is false. A secret goes
// to Config.Vault and the model gets its handle only, which tools can pass to the vault;
// without a vault the result is an error. Since the result hands it on, the vault keeps
// the secret after the call: it is the vault's to let it expire.
//
// The section "elicit" of an agent spec says what becomes of questions that nobody
// answers:
//
//	"elicit": {"lifetime": "10m", "unattended": "decline"}
//
// A question that has a default value takes it. For the others "unattended" counts:
// "cancel" (if nothing is said), "decline", or "wait" until somebody comes. That happens
// at once when there is nobody to ask, or with a lifetime when that is over.
package elicit
