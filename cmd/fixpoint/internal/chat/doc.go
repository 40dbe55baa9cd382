// Package chat is an interactive session: a person gives prompts to an agent, answers
// its questions, and uses slash commands, on threads that are kept in a store.
//
// # What is typed
//
// A line is a prompt, unless it begins with a slash: then it is a slash command, one of
// a plugin or one of the session's own, which are those of the plugin that Plugin
// returns. A line that begins with two slashes is a prompt that begins with one. The
// engine refuses a plugin whose command has the name of another one, and names both.
//
// # While a run is under way
//
// Its events are written above the line that is edited, which takes narrow slash commands
// meanwhile. Those that steer are for between runs: what they ask for, another thread or
// another run, needs the thread to be free. A prompt that is typed too early is kept for
// when the run has ended. Without a terminal nothing is read during a run but the answers
// to its questions, since lines that are all there at once say nothing about when each
// was meant.
//
// Ctrl-C abandons the line, or the question, and cancels the run; the session goes on. A
// second one within two seconds leaves. Ctrl-D on an empty line leaves; at a question it
// leaves the question open, and the run waits for the next session on the thread.
//
// # Questions
//
// A question of a run is asked where the line was, and the line comes back afterwards. A
// call that is asked about can be edited: its arguments are there as JSON to be changed,
// and are asked for again until they are a JSON object that fits the tool's schema, which
// is known from what the model was offered in this session. The gates are asked once more
// about what is then run.
//
// What is in the store is what "fixpoint run --store" keeps. So the other commands know
// the threads of a chat: pending, approve, answer, resume, history.
package chat
