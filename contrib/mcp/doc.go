// Package mcp connects engines with the Model Context Protocol: the tools, resources
// and prompts of its servers are there for agents, and an agent is there as a tool for
// its clients. It stands on the protocol's official SDK for Go.
//
// # Servers for agents
//
// Connect starts or reaches servers and asks what they have. What it returns is a plugin
// with their tools:
//
//	servers, err := mcp.Connect(ctx, mcp.Options{Servers: []mcp.Server{
//		{Name: "files", Command: "files-server", Args: []string{"--root", "."}},
//		{Name: "search", URL: "https://search.example/mcp"},
//	}})
//	...
//	eng, err := engine.New(engine.Config{Plugins: []engine.Plugin{servers}, ...})
//
// Closing the engine closes the servers; of several engines that share them, all but one
// get Servers.Shared. If New fails, Servers.Close is for the caller to call.
//
// The plugin registers: the tools, named server__tool; the section "mcp"; a gate and a
// transform that hold an agent to the lists of its section; a hook and an action at
// RunStart, for the section's context; and a hook and an action at AfterToolExecute, for
// calls that were called off. Its key Attached has scope thread.
//
// # Names and kinds
//
// A tool is named after its server, two underscores, and its own name, in which "_"
// takes the place of what model services do not accept; beyond 64 bytes it is cut and
// ends in a hash. Of two tools of a server that would have one name, the one whose name
// is exact stays, or else the first by its own name, whatever the order of the list; the
// other is left out and told of. Tools of two servers cannot have one name.
//
// A tool's kind, which policies look at, is "mcp". With Server.TrustHints it is "read" or
// "write" if the server says that the tool only reads or only adds. Without trust the
// hints of a server count for nothing. In descriptions, characters that cannot be seen
// are taken out. What a server writes there or in a result is still read by the model:
// gates are what keeps an agent in bounds, not this package.
//
// # When lists change
//
// An engine fixes its tools when it is built, so Connect comes before it. One tool that
// calls all others by name would not need that, but to gates and policies all its calls
// would look the same. So a tool stays what it was, and with it what was agreed to: one
// that the server takes back or describes in another way is not called any more
// (ErrChanged). Tools that came later are what Servers.NewTools returns, for the
// engine.Input of the next run, or for the next engine. A change is a notice.
//
// # Calls and results
//
// Arguments go to the server as the model wrote them, after the gates. Those that have a
// name twice, or in two cases, are refused: a gate could read them in another way than
// the server. A result's texts
// are the content; structured content, images, sounds and resources are in the details
// as JSON of the type Details, and with Server.Media the model sees images and sounds.
// Results, descriptions, schemas, lists and messages are bounded by Limits.
//
// A call ends at Server.Timeout, at the engine's own limit, or with the run; the server
// is told, and what it answers later is dropped. When a connection is lost, calls under
// way fail with ErrLost. Nobody knows what the server had done, so they are never made
// again by this package. The next call connects again: the first time at once, later
// after delays that double up to a minute, in which calls fail with ErrDown.
//
// Progress goes to Options.Progress: the engine has no event for it.
//
// # Questions of servers
//
// With Server.Elicit a server may ask the user. Its questions become the tickets of its
// tool: Config.Resolver answers them, or the run waits for Thread.Resume. They have a
// schema, so Config.Schemas must be set. A server that speaks the protocol of 2026-07-28
// or later asks by its result and is called again with the answers: that outlives the
// process. An older one asks while the call runs. Then the call is kept for
// Limits.Parked; an answer that comes after it is gone, also since the process ended, is
// an error result and makes no second call. As such a question does not say which call
// it is about, the calls of such a server run one after another, and while one waits
// for an answer others fail at once. A no ends the call, and the server is told.
//
// Servers get no model to sample and no roots, and cannot have users open addresses.
//
// # Programs
//
// A program inherits the variables of DefaultEnv and what Server.Env adds, nothing else.
// It runs in a process group of its own. At Close its input is closed; after
// Limits.Close its group is asked to end, and then killed. Where there are no process
// groups only the program itself is. What it writes to standard error goes to
// Options.Logger, and its last lines into the error when it ends.
//
// # The section
//
//	"mcp": {
//	  "servers": {
//	    "files": {"command": "files-server", "args": ["--root", "."], "env_from": {"TOKEN": "FILES_TOKEN"}},
//	    "search": {"url": "https://search.example/mcp", "headers_from": {"Authorization": "SEARCH_AUTH"}}},
//	  "deny": ["files__delete_*"],
//	  "context": [{"server": "files", "resource": "file:///README.md"}]}
//
// FromSpecs reads the servers of specs, for Connect. A spec holds no secrets but the
// names of environment variables. An agent may use the servers of "use", or else those
// of "servers", or else all, and of their tools what "allow" and "deny" leave. A name in
// it that no server has ends the run before it begins. What "deny" takes away is denied
// to delegates as well; they have servers of their own. Resources and prompts in
// "context" become messages when a thread's first run starts; one that cannot be read is
// a dead letter and is tried again by the next run.
//
// # Agents as tools
//
// NewAgent, Handler and Serve show an agent of an engine to clients as a tool that takes
// a prompt. The result names a thread, with which another call goes on; its id cannot be
// guessed, and where clients are authenticated it is good only for the one who began it.
// Messages of the run are told as progress. Questions of the run are asked of the
// client's user where the client can ask: a yes or no, a text, a choice or a flat form,
// but no secret. Otherwise the result says that the run waits, and a second tool takes
// the answers. Its caller is the client's model; AgentOptions.NoAnswers leaves it out.
//
// # Determinism
//
// What servers answer decides. Hooks, gate and transform depend on the state, the spec,
// and the lists that servers gave, except that AfterToolExecute looks whether a call
// of that very id is kept for an answer.
package mcp
